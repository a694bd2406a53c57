#pragma once

#include <functional>
#include <string>

#include "sdk_harness.h"

// What tests of changes share: a plugin that can be changed, and what a coordinator says to have it done.
namespace muster::test {

/// Things that can be changed; counts what it was asked for.
struct ChangingPlugin : Plugin {
  int calls = 0;
  CreateRequest created;
  UpdateRequest updated;
  std::function<Result<Mutation>(JobContext&)> answer = [](JobContext&) -> Result<Mutation> {
    return Mutation(Resource{"made", Properties{{"n", 1}}, "uid"});
  };

  ChangingPlugin() : Plugin({.name = "things", .ns = "TH", .version = "1.2.3"}) {
    type({.name = "TH::Thing"})
        .read([](const ReadRequest&, JobContext&) -> Result<Resource> { return not_found(); })
        .create([this](const CreateRequest& request, JobContext& context) {
          ++calls;
          created = request;
          return answer(context);
        })
        .update([this](const UpdateRequest& request, JobContext& context) {
          ++calls;
          updated = request;
          return answer(context);
        })
        .remove([this](const DeleteRequest&, JobContext& context) {
          ++calls;
          return answer(context);
        })
        .status([this](const StatusRequest&, JobContext& context) { return answer(context); });
  }
};

inline const JobOperation kCreate = CreateJob{.idempotency_key = "op-1", .properties = {}, .parent = {}};

inline Running running(const std::string& token) {
  return {JobId("job-" + token), Token(token)};
}

inline ResultAck ack(const std::string& token, Verdict verdict = Verdict::kCommitted) {
  return {JobId("job-" + token), Token(token), verdict, ""};
}

/// Dispatches a mutation, and lets it begin.
inline void begin(testing::WorkerHarness& worker, const Job& job) {
  worker.send_to_pool(job);
  worker.control(Go{{job.id, job.token}});
}
inline void begin(testing::WorkerHarness& worker, const std::string& token, const JobOperation& operation = kCreate) {
  begin(worker, worker.job(token, operation));
}

inline std::string reply_subject(const testing::WorkerHarness& worker, const std::string& token) {
  return worker.reply_subject(Token(token));
}

}  // namespace muster::test
