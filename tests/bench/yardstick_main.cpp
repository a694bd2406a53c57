#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>

#include <CLI/CLI.hpp>

#include "tests/bench/yardstick.h"

int main(int argc, char** argv) {
  using namespace muster::bench;
  CLI::App app("Straight-line programs that Muster is measured against");
  app.require_subcommand(1);
  PageOptions pages;
  RequestOptions requests;
  for (const auto* name : {"pages", "pipeline"}) {
    auto* sub = app.add_subcommand(name);
    sub->add_option("--url", pages.url)->required();
    sub->add_option("--kind", pages.kind)->check(CLI::IsMember({"bare", "same-work"}));
    sub->add_option("--store", pages.store);
    sub->add_option("--resources", pages.resources);
    sub->add_option("--types", pages.types);
    sub->add_option("--page", pages.page);
    sub->add_option("--bytes", pages.bytes);
    sub->add_flag("--reads", pages.reads);
    sub->add_option("--passes", pages.passes);
    sub->add_option("--filtered", pages.filtered);
    sub->add_option("--changed", pages.changed);
  }
  for (const auto* name : {"echo", "mute", "observe", "requests", "slots", "slow-requests"}) {
    auto* sub = app.add_subcommand(name);
    sub->add_option("--url", requests.url)->required();
    sub->add_option("--count", requests.count);
    sub->add_option("--window", requests.window);
    sub->add_option("--request", requests.request);
    sub->add_option("--reply", requests.reply);
    sub->add_flag("--same-subjects", requests.same_subjects);
    sub->add_option("--place", requests.place);
    sub->add_option("--seconds", requests.seconds);
  }
  CommitOptions commits;
  std::string unused;
  auto* sub = app.add_subcommand("commits");
  sub->add_option("--url", unused);
  sub->add_option("--store", commits.store)->required();
  sub->add_option("--count", commits.count);
  CLI11_PARSE(app, argc, argv);
  try {
    if (app.got_subcommand("pages")) return serve_pages(pages);
    if (app.got_subcommand("pipeline")) return run_pipeline(pages);
    if (app.got_subcommand("commits")) return run_commits(commits);
    if (app.got_subcommand("mute")) return serve_silence(requests);
    if (app.got_subcommand("observe")) return observe(requests);
    if (app.got_subcommand("slots")) return serve_slots(requests);
    if (app.got_subcommand("slow-requests")) return run_slots(requests);
    return app.got_subcommand("echo") ? serve_echo(requests) : run_requests(requests);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
