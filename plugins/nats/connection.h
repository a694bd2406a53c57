#pragma once

#include <string>

#include "muster/worker.h"
#include "worker_sdk/bus/nats_handles.h"

namespace muster::nats {

/// A connection of one job to its target. It never reconnects: a job that loses it fails, and is tried again as a
/// whole. Every wait ends early when the job is cancelled. Errors name servers without users and passwords. Thread: the
/// job's.
class Connection {
 public:
  /// `context`  must outlive the connection
  /// errors     kServiceUnavailable (nobody listens there), kAccessDenied, kInvalidRequest (a file cannot be read, the
  ///            URL cannot be understood, TLS is wanted), kCancelled
  static Result<Connection> open(const BusAccess& server, JobContext& context);

  /// The body of the first answer; counts as one call.
  /// errors   kLimit (longer than the server takes), kNoResponders, kAccessDenied, kTimeout, kNetwork, kCancelled
  Result<std::string> request(const std::string& subject, const std::string& body);

 private:
  Connection(ConnectionPtr connection, JobContext& context) : connection_(std::move(connection)), context_(&context) {}

  ConnectionPtr connection_;
  JobContext* context_;
};

}  // namespace muster::nats
