#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config.h"
#include "connection.h"

namespace muster::nats {

/// All objects of a kind, whole pages of the API put together.
struct Listing {
  std::map<std::string, Json> infos{};  // by name; as the API's INFO gives them
  std::vector<std::string> missing{};   // that the servers of a cluster know of, and could not tell about
  bool settled = true;                  // false: objects came and went at each try, so one may be left out
};

/// Asks for one page of a LIST, from an offset on.
using PageRequest = std::function<Result<Json>(std::size_t offset)>;

/// Pages of the API are cut by offset: where the number of objects changes on the way, one can slip through between two
/// pages. Then everything is listed again, a few times at most, and what any try showed is in the listing.
/// `key`    of the objects in a page: `streams`, `consumers`
/// errors   those of `request`; kInternalFailure where a page is not what the API promises
Result<Listing> list_pages(const PageRequest& request, const std::string& key);

/// From the `error` of an answer, by its err_code, never by its code (that of a refused config is 500).
Error error_of(const Json& error);

/// The JetStream API, as JSON over request and reply.
/// Errors beside those of the API: those of Connection; kUnsupported where JetStream is not enabled.
class JetStream {
 public:
  /// `context`  must outlive it
  static Result<JetStream> open(const Config& config, JobContext& context);

  Result<Json> account();
  Result<Json> stream(const std::string& name);
  Result<Json> consumer(const std::string& stream, const std::string& name);
  Result<Listing> streams();
  Result<Listing> consumers(const std::string& stream);

  // Changes; those that make something answer with its info. An error of Connection, but for kLimit, says nothing
  // of whether it was done.
  Result<Json> create_stream(const Json& config);
  Result<Json> update_stream(const Json& config);
  Result<Json> delete_stream(const std::string& name);
  /// Of a durable one. Servers before 2.10 take no notice of `action`: they change what is there and make what is not.
  /// `action`  create, update
  Result<Json> put_consumer(const char* action, const std::string& stream, const Json& config);
  Result<Json> delete_consumer(const std::string& stream, const std::string& name);

 private:
  JetStream(Connection connection, std::string prefix)
      : connection_(std::move(connection)), prefix_(std::move(prefix)) {}
  Result<Json> ask(const std::string& what, const std::string& body);

  Connection connection_;
  std::string prefix_;  // of all subjects, with a dot at its end
};

}  // namespace muster::nats
