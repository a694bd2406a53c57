#include "jetstream.h"

#include <optional>

namespace muster::nats {
namespace {

constexpr int kTries = 3;

Error malformed(const std::string& what) {
  return failure(Errc::kInternalFailure, "not an answer of JetStream: " + what);
}

/// nats-server, server/errors.json.
Errc errc_of(int err_code) {
  switch (err_code) {
    case 10014:  // consumer
    case 10059:  // stream
    case 10149:  // consumer, asked to be updated
      return Errc::kNotFound;
    case 10013:  // consumer name
    case 10058:  // stream name in use
    case 10105:  // consumer
    case 10148:  // consumer
      return Errc::kAlreadyExists;
    case 10003:  // bad request
    case 10012:  // consumer config
    case 10025:  // invalid JSON
    case 10052:  // stream config
    case 10074:  // replicas without a cluster
      return Errc::kInvalidRequest;
    case 10039:  // for the account
    case 10076:
      return Errc::kUnsupported;
    case 10071:  // wrong last sequence
      return Errc::kConflict;
    case 10008:  // temporarily unavailable
    case 10009:  // no leader
    case 10023:  // resources
      return Errc::kServiceUnavailable;
    case 10002:  // of the account
    case 10026:  // consumers
    case 10027:  // streams
    case 10028:  // memory
    case 10047:  // storage
      return Errc::kLimit;
    default:
      return Errc::kInternalFailure;
  }
}

/// One pass over all pages. Returns whether the total stayed the same.
Result<bool> list_once(const PageRequest& request, const std::string& key, Listing& listing) {
  std::optional<std::size_t> total;
  bool settled = true;
  listing.missing.clear();
  for (std::size_t offset = 0;;) {
    const auto page = request(offset);
    if (!page) return page.error();
    const std::size_t before = offset;
    for (const auto& info : page->at(key)) {
      // A consumer is named beside its config, a stream within.
      const Json& name = info.contains("name") ? info.at("name") : info.at("config").at("name");
      listing.infos[name.get<std::string>()] = info;
      ++offset;
    }
    const auto missing = page->find("missing");
    if (missing != page->end() && !missing->is_null()) {
      for (const auto& name : *missing) listing.missing.push_back(name.get<std::string>());
      offset += missing->size();
    }
    const auto now = page->at("total").get<std::size_t>();
    settled = settled && now == total.value_or(now);
    total = now;
    if (offset >= now) return settled;
    if (offset == before) return false;  // a page of nothing before the end
  }
}

}  // namespace

Result<Listing> list_pages(const PageRequest& request, const std::string& key) {
  try {
    Listing listing;
    for (int i = 0; i < kTries; ++i) {
      const auto settled = list_once(request, key, listing);
      if (!settled) return settled.error();
      listing.settled = *settled;
      if (listing.settled) break;
    }
    return listing;
  } catch (const Json::exception& error) {
    return malformed(error.what());
  }
}

Error error_of(const Json& error) {
  const int err_code = error.value("err_code", 0);
  const int code = error.value("code", 0);
  auto message = error.value("description", "no description") + " (err_code " + std::to_string(err_code) + ")";
  const Errc errc = errc_of(err_code);
  if (errc == Errc::kInternalFailure && code == 429) return throttled(std::move(message));
  if (errc == Errc::kInternalFailure && code == 400) return invalid_request(std::move(message));
  return failure(errc, std::move(message));
}

Result<JetStream> JetStream::open(const Config& config, JobContext& context) {
  auto connection = Connection::open(config.server, context);
  if (!connection) return connection.error();
  return JetStream(std::move(*connection), config.domain.empty() ? "$JS.API." : "$JS." + config.domain + ".API.");
}

Result<Json> JetStream::account() {
  return ask("INFO", "");
}
Result<Json> JetStream::stream(const std::string& name) {
  return ask("STREAM.INFO." + name, "");
}

Result<Json> JetStream::consumer(const std::string& stream, const std::string& name) {
  return ask("CONSUMER.INFO." + stream + "." + name, "");
}

Result<Listing> JetStream::streams() {
  return list_pages(
      [this](std::size_t offset) {
        return ask("STREAM.LIST", Json{{"offset", offset}}.dump());
      },
      "streams");
}

Result<Listing> JetStream::consumers(const std::string& stream) {
  const auto page = [&](std::size_t offset) { return ask("CONSUMER.LIST." + stream, Json{{"offset", offset}}.dump()); };
  return list_pages(page, "consumers");
}

Result<Json> JetStream::create_stream(const Json& config) {
  return ask("STREAM.CREATE." + config.at("name").get<std::string>(), config.dump());
}

Result<Json> JetStream::update_stream(const Json& config) {
  return ask("STREAM.UPDATE." + config.at("name").get<std::string>(), config.dump());
}

Result<Json> JetStream::delete_stream(const std::string& name) {
  return ask("STREAM.DELETE." + name, "");
}

Result<Json> JetStream::put_consumer(const char* action, const std::string& stream, const Json& config) {
  return ask("CONSUMER.DURABLE.CREATE." + stream + "." + config.at("durable_name").get<std::string>(),
             Json{{"stream_name", stream}, {"config", config}, {"action", action}}.dump());
}

Result<Json> JetStream::delete_consumer(const std::string& stream, const std::string& name) {
  return ask("CONSUMER.DELETE." + stream + "." + name, "");
}

Result<Json> JetStream::ask(const std::string& what, const std::string& body) {
  const auto answer = connection_.request(prefix_ + what, body);
  if (!answer) {
    if (answer.error().code != Errc::kNoResponders) return answer.error();
    return unsupported("JetStream is not enabled: nobody answers on " + prefix_ + what);
  }
  auto json = Json::parse(*answer, nullptr, false);
  if (!json.is_object()) return malformed(prefix_ + what);
  if (const auto error = json.find("error"); error != json.end() && error->is_object()) {
    auto mapped = error_of(*error);
    mapped.message = what + ": " + mapped.message;
    return mapped;
  }
  return json;
}

}  // namespace muster::nats
