#pragma once

#include <string>
#include <utility>
#include <variant>

#include <catch2/catch.hpp>

#include "plugins/postgres/postgres.h"
#include "support/postgres_client.h"
#include "worker_sdk/testing/fake_context.h"

namespace muster::test {

using Db = PostgresClient;

/// The plugin, and a target of it.
struct PostgresPlugin {
  Plugin plugin{postgres::plugin_info()};
  Json config;

  explicit PostgresPlugin(const std::string& dsn) : config{{"dsn", dsn}} { postgres::add_types(plugin); }

  [[nodiscard]] JobResult run(const std::string& type, JobOperation operation, JobContext& context) const {
    Job job;
    job.ns = "PG";
    job.type = type;
    job.operation = std::move(operation);
    return plugin.run(job, config, context);
  }
  [[nodiscard]] JobResult run(const std::string& type, JobOperation operation) const {
    testing::FakeContext context;
    return run(type, std::move(operation), context);
  }
  [[nodiscard]] ReadItem read(const std::string& type, const std::string& id) const {
    return testing::read_all(plugin, type, config, {id}).at(0);
  }
  [[nodiscard]] Item item(const std::string& type, const std::string& id) const {
    auto answer = read(type, id);
    if (const auto* error = std::get_if<Error>(&answer)) FAIL(type << " " << id << ": " << error->message);
    return std::get<Item>(answer);
  }
  [[nodiscard]] Json properties(const std::string& type, const std::string& id) const {
    return Json::parse(item(type, id).properties);
  }
};

/// A database that is dropped at the end, whoever is in it still.
class OwnDatabase {
 public:
  OwnDatabase(std::string admin_dsn, std::string called) : name(std::move(called)), admin_dsn_(std::move(admin_dsn)) {
    Db(admin_dsn_).run("CREATE DATABASE " + ident(name));
  }
  OwnDatabase(const OwnDatabase&) = delete;
  OwnDatabase& operator=(const OwnDatabase&) = delete;
  ~OwnDatabase() { Db(admin_dsn_).run("DROP DATABASE IF EXISTS " + ident(name) + " WITH (FORCE)"); }

  const std::string name;

 private:
  const std::string admin_dsn_;
};

}  // namespace muster::test
