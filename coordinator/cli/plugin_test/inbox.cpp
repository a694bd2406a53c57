// What workers say to the fleet of `muster plugin test`.

#include <algorithm>

#include "coordinator/cli/plugin_test/fleet.h"
#include "schema/codec.h"
#include "worker_sdk/bus/digest.h"

namespace muster::cli::conformance {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBatch = 256;
constexpr Millis kBusyPause{50};
constexpr std::size_t kLogLines = 200;

}  // namespace

void TestFleet::receive() {
  std::vector<Message> messages;
  while (bus_->receive(messages, kBatch) > 0) {
    for (const auto& message : messages) {
      if (message.subscription == announces_) {
        on_announcement(message);
      } else if (message.subscription == heartbeats_) {
        on_heartbeat(message);
      } else {
        on_reply(message);
      }
    }
    messages.clear();
  }
}

void TestFleet::on_announcement(const Message& message) {
  look_for_canaries(message.data, "an announcement");
  const auto announcement = decode<Announcement>(message.data);
  if (!announcement) {
    refused_ = "an announcement that cannot be understood: " + announcement.error().message;
    return;
  }
  auto* worker = process_of(announcement->worker);
  for (auto& each : processes_) {  // by its pid; one that was started by a script by its turn
    const bool mine = announcement->pid == static_cast<std::uint32_t>(each.child.pid());
    if (each.id.empty() && (mine || (worker == nullptr && &each == &processes_.back()))) worker = &each;
  }
  if (worker == nullptr) return;
  worker->id = announcement->worker;
  if (announcement->protocol != kProtocolMajor) {
    refused_ = "the worker speaks version " + std::to_string(announcement->protocol) + " of the protocol, not " +
               std::to_string(kProtocolMajor);
  } else if (!valid_namespace(announcement->ns) || !valid_token(announcement->worker.value)) {
    refused_ = "the namespace or id in the announcement is none: " + announcement->ns;
  } else if (announcement->manifest != manifest_hash_) {
    if (!manifest_hash_.empty()) refused_ = "another manifest at another start of the same plugin";
    announcement_ = *announcement;
    if (!manifest_token_.empty()) return;  // it is asked already
    manifest_token_ = Token(make_token(random_));
    say(subjects_.worker_control(announcement->ns, announcement->worker),
        encode(Control{fleet_, SendManifest{announcement->manifest}}),
        subjects_.reply(announcement->ns, self_, manifest_token_));
  } else {
    worker->accepted = true;
    announcement_ = *announcement;
    say(std::string(message.reply), encode(AnnouncementReply{fleet_, self_, {}, {}}));
  }
}

void TestFleet::take_manifest(const JobReply& reply) {
  if (const auto* part = std::get_if<Part>(&reply.body)) {
    const auto whole = manifest_parts_.add(*part);
    if (!whole) {
      refused_ = "the parts of the manifest do not fit: " + whole.error().message;
    } else if (*whole) {
      const auto inner = decode<JobReply>(**whole);
      inner ? take_manifest(*inner) : void(refused_ = "the manifest: " + inner.error().message);
    }
    return;
  }
  const auto* bytes = std::get_if<ManifestBytes>(&reply.body);
  if (bytes == nullptr) {
    refused_ = "sendManifest is not answered with a manifest";
  } else if (sha256_hex(bytes->encoded) != announcement_.manifest) {
    refused_ = "the manifest's SHA-256 is not the hash that was announced";
  } else if (auto manifest = decode<Manifest>(bytes->encoded); !manifest) {
    refused_ = "the manifest cannot be understood: " + manifest.error().message;
  } else if (manifest->ns != announcement_.ns) {
    refused_ = "the manifest is of namespace " + manifest->ns + ", the worker of " + announcement_.ns;
  } else {
    manifest_ = std::move(*manifest);
    manifest_hash_ = announcement_.manifest;  // the worker announces again, every second
  }
}

void TestFleet::on_heartbeat(const Message& message) {
  look_for_canaries(message.data, "a heartbeat");
  const auto heartbeat = decode<Heartbeat>(message.data);
  if (!heartbeat) return;
  if (auto* worker = process_of(heartbeat->worker); worker != nullptr && worker->accepted) worker->heard = true;
}

void TestFleet::on_reply(const Message& message) {
  if (message.no_responders) {
    const auto token = Token(std::string(subject_token(message.subject, subjects_.prefix(), 3)));
    if (const auto it = sent_.find(token); it != sent_.end()) it->second->again = Clock::now() + kBusyPause;
    return;
  }
  const auto reply = decode<JobReply>(message.data);
  if (!reply) {
    leaks_.push_back("a reply cannot be understood: " + reply.error().message);
    return;
  }
  if (reply->token == manifest_token_) return take_manifest(*reply);
  const auto it = sent_.find(reply->token);
  const auto dispatch = it == sent_.end() ? nullptr : it->second;
  const std::string of =
      dispatch ? std::string(operation_name(dispatch->job.operation)) + " of " + dispatch->job.type : "an earlier job";
  if (const auto* part = std::get_if<Part>(&reply->body)) {
    auto whole = dispatch ? dispatch->parts.add(*part) : Result<std::optional<Bytes>>(std::optional<Bytes>());
    if (!whole || !*whole) return;
    look_for_canaries(**whole, "the answer to " + of);
    const auto inner = decode<JobReply>(**whole);
    if (!inner) return;
    acknowledge(*inner, message.reply);
    return take(*dispatch, *inner);
  }
  look_for_canaries(message.data, "the answer to " + of);
  acknowledge(*reply, message.reply);
  if (dispatch) take(*dispatch, *reply);
}

void TestFleet::acknowledge(const JobReply& reply, std::string_view to) {
  if (to.empty() || !std::holds_alternative<JobResult>(reply.body)) return;
  say(std::string(to), encode(ResultAck{reply.job, reply.token, Verdict::kCommitted, {}}));
}

void TestFleet::take(Dispatch& dispatch, const JobReply& reply) {
  const auto now = Clock::now();
  const auto* worker = process_of(reply.worker);
  dispatch.by = worker == nullptr ? 0 : worker->number;
  if (std::holds_alternative<Busy>(reply.body)) {
    dispatch.again = now + kBusyPause;
  } else if (std::holds_alternative<Accepted>(reply.body)) {
    dispatch.accepted = true;
    if (dispatch.claim == Claim::kHold || !is_mutation(dispatch.job.operation) || worker == nullptr) return;
    say(subjects_.worker_control(dispatch.job.ns, worker->id),
        encode(Control{fleet_, Go{{dispatch.job.id, dispatch.job.token}}}));
    dispatch.gone = true;
  } else if (const auto* result = std::get_if<JobResult>(&reply.body); result != nullptr && !dispatch.result) {
    dispatch.result = *result;
    dispatch.calls = reply.calls;
    dispatch.done = now;
    calls_ += reply.calls;
    limiter_.charge(dispatch.job.ns, dispatch.job.target.id, reply.calls > 1 ? reply.calls - 1 : 0, now);
    if (const auto* error = std::get_if<Error>(result); error != nullptr && error->code == Errc::kThrottling) {
      ++throttled_;
      limiter_.throttled(dispatch.job.ns, dispatch.job.target.id, error->retry_after, now);
    }
    std::erase_if(open_, [&](const DispatchPtr& each) { return each.get() == &dispatch; });
    sent_.erase(dispatch.job.token);
  }
}

/// Reads what workers log, and notices those that end.
void TestFleet::watch() {
  std::vector<std::pair<int, std::string>> ended;
  for (auto& each : processes_) {
    const auto keep = [&](std::string_view line) {
      look_for_canaries(line, "the worker's log");
      options_.log(line);
      log_.emplace_back(line);
      if (log_.size() > kLogLines) log_.erase(log_.begin(), log_.begin() + kLogLines / 2);
    };
    each.child.read_lines(keep);
    if (int status = 0; each.child.ended(status)) {
      each.child.read_rest(keep);
      ended.emplace_back(each.number, "the worker " + describe_exit(status));
    }
  }
  for (const auto& [number, why] : ended) {
    deaths_.push_back(why);
    std::erase_if(processes_, [number = number](const Process& each) { return each.number == number; });
    lose(number, why);
  }
  server_->read_lines([](std::string_view) {});
  if (int status = 0; server_->ended(status)) throw Stopped("nats-server " + describe_exit(status));
}

void TestFleet::lose(int number, const std::string& why) {
  std::vector<DispatchPtr> lost;
  for (const auto& each : open_) {
    if (each->by == number || each->only == number) lost.push_back(each);
  }
  for (const auto& each : lost) {
    each->result = Error{Errc::kNetwork, why, {}, 0};
    each->done = Clock::now();
    open_.erase(each);
    sent_.erase(each->job.token);
  }
}

void TestFleet::look_for_canaries(std::string_view text, const std::string& where) {
  for (const auto& canary : options_.canaries) {
    if (text.find(canary) != std::string_view::npos) leaks_.push_back("a secret stands in " + where);
  }
}

}  // namespace muster::cli::conformance
