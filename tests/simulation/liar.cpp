#include "simulation/liar.h"

#include <array>

#include <sodium.h>

#include "schema/codec.h"

namespace muster::sim {
namespace {

constexpr std::size_t kRemembered = 32;
constexpr std::size_t kClaims = 8;

std::string sha256_hex(const Bytes& bytes) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest{};
  crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  std::string text(2 * digest.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), digest.data(), digest.size());
  text.pop_back();
  return text;
}

/// Of a job that is the liar's own it may be believed.
JobResult lie_itself() {
  return Error{Errc::kAccessDenied, std::string(kLie), {}, 0};
}
JobResult forged() {
  return Error{Errc::kAccessDenied, std::string(kForged), {}, 0};
}

}  // namespace

Liar::Liar(MemoryBroker& broker, const Clock& clock, Random& random, Bytes manifest)
    : clock_(clock),
      random_(random),
      manifest_(std::move(manifest)),
      hash_(sha256_hex(manifest_)),
      bus_(broker.connect("liar")),
      id_(make_token(random)),
      due_(clock.now()) {
  jobs_ = bus_->subscribe(subjects_.worker_job("SIM", id_)).value();
  control_ = bus_->subscribe(subjects_.worker_control("SIM", id_)).value();
  bus_->subscribe_answers(bus_->inbox() + ".>").value();
}

void Liar::announce() {
  Announcement announcement;
  announcement.worker = id_;
  announcement.ns = "SIM";
  announcement.plugin = "sim";
  announcement.version = "1.0.0";
  announcement.manifest = hash_;
  announcement.slots = static_cast<std::uint16_t>(1 + random_.below(3));
  static_cast<void>(bus_->publish({subjects_.announce("SIM"), bus_->inbox() + ".announce", encode(announcement), {}}));
}

void Liar::heartbeat() {
  Heartbeat beat;
  beat.worker = id_;
  beat.ns = "SIM";
  beat.free_slots = static_cast<std::uint16_t>(random_.below(4));
  beat.running.assign(claims_.begin(), claims_.end());
  static_cast<void>(bus_->publish({subjects_.heartbeat("SIM"), {}, encode(beat), {}}));
}

void Liar::turn() {
  std::vector<Message> inbox;
  bus_->receive(inbox, 1000);
  for (const auto& message : inbox) {
    if (message.subscription == jobs_ || (group_ != 0 && message.subscription == group_)) {
      on_job(message);
    } else if (message.subscription == control_) {
      on_control(message);
    } else if (const auto reply = decode<AnnouncementReply>(message.data); reply && !reply->rejected) {
      fleet_ = reply->fleet;
      if (group_ == 0) group_ = bus_->subscribe(subjects_.job("SIM", "default"), kWorkersGroup).value();
    }
  }
  if (clock_.now() < due_) return;
  due_ = clock_.now() + Millis(200 + random_.below(1000));
  if (fleet_.empty() || random_.below(8) == 0) announce();
  if (fleet_.empty()) return;
  if (random_.below(8) > 0) heartbeat();
  if (!known_.empty()) lie_of_others();
}

void Liar::on_control(const Message& message) {
  const auto control = decode<Control>(message.data);
  if (!control || !std::holds_alternative<SendManifest>(control->action))
    return;  // `go` and `cancel`: to somebody else
  Job asked;
  asked.fleet = control->fleet;
  const std::string reply(message.reply);
  asked.token = Token(reply.substr(reply.rfind('.') + 1));
  say(asked, reply, ManifestBytes{manifest_});
}

void Liar::on_job(const Message& message) {
  auto job = decode<Job>(message.data);
  if (!job) return;
  known_.push_back({std::move(*job), std::string(message.reply)});
  if (known_.size() > kRemembered) known_.pop_front();
  lie(Known(known_.back()));
}

void Liar::lie(const Known& known) {
  const auto& [job, reply] = known;
  const bool change = is_mutation(job.operation);
  switch (random_.below(9)) {
    case 0:  // nothing at all
      return;
    case 1:
      return say(job, reply, Busy{});
    case 2:  // claims it, and is never heard of it again
      return say(job, reply, Accepted{});
    case 3:  // claims it, and keeps it
      claims_.push_back({job.id, job.token});
      if (claims_.size() > kClaims) claims_.pop_front();
      return say(job, reply, Accepted{});
    case 4:  // bytes that mean nothing
      static_cast<void>(bus_->publish({reply, {}, "no reply", {}}));
      return;
    case 5:  // an answer to something else
      return say(job, reply,
                 change || std::holds_alternative<StatusJob>(job.operation) ? JobResult(ReadResult{})
                                                                            : JobResult(MutationResult{}));
    case 6: {  // as another
      auto other = job;
      other.token = Token(make_token(random_));
      return say(other, reply, forged());
    }
    case 7: {  // in another fleet
      auto other = job;
      other.fleet = FleetId("elsewhere");
      return say(other, reply, forged());
    }
    default: {
      const auto* read = std::get_if<ReadJob>(&job.operation);
      if (read == nullptr || read->native_ids.size() > 1) return say(job, reply, ReadResult{});
      // the answer for another id
      return say(job, reply, ReadResult{{Item{"of-a-liar", "uid-of-a-liar", R"({"name":"a liar's"})"}}});
    }
  }
}

void Liar::lie_of_others() {
  const auto& [job, reply] = any();
  const auto& [another, its_reply] = any();
  const auto ack_to = bus_->inbox() + ".ack." + job.token.value;
  switch (random_.below(6)) {
    case 0:  // of former times
      return say(job, reply, lie_itself());
    case 1:  // once more, to whoever takes results
      return say(job, subjects_.result("SIM"), lie_itself(), ack_to);
    case 2: {  // the token of another job
      auto mixed = job;
      mixed.token = another.token;
      return say(mixed, its_reply, job.id == another.id ? lie_itself() : forged(), ack_to);
    }
    case 3:  // a job that it has not
      claims_.push_back({job.id, random_.below(2) == 0 ? another.token : Token(make_token(random_))});
      if (claims_.size() > kClaims) claims_.pop_front();
      return;
    case 4:
      return say(job, reply, Accepted{});
    default:
      return say(job, reply, Busy{});
  }
}

void Liar::say(const Job& job, const std::string& subject, decltype(JobReply::body) body, std::string ack_to) {
  JobReply reply;
  reply.fleet = job.fleet;
  reply.job = job.id;
  reply.token = job.token;
  reply.worker = id_;
  reply.attempt = job.attempt;
  reply.body = std::move(body);
  static_cast<void>(bus_->publish({subject, std::move(ack_to), encode(reply), {}}));
}

}  // namespace muster::sim
