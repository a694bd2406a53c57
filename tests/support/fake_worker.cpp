#include "support/fake_worker.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <sodium.h>
#include <nlohmann/json.hpp>

#include "coordinator/store.h"

namespace muster::test {

FakeSystem::Thing& FakeSystem::thing(const std::string& type, const std::string& id) {
  const auto it = std::ranges::find(things[type], id, &Thing::id);
  if (it == things[type].end()) throw std::runtime_error("no thing " + id);
  return *it;
}

void FakeSystem::remove(const std::string& type, const std::string& id) {
  std::erase_if(things[type], [&](const Thing& thing) { return thing.id == id; });
}

namespace {

ListResult list(const FakeSystem& system, const std::vector<FakeSystem::Thing>& things, const ListJob& job) {
  const auto parent = job.parent ? job.parent->native_id : std::string();
  const auto first = job.page_token.empty() ? 0 : std::stoul(job.page_token);
  ListResult page;
  std::size_t index = 0;
  for (const auto& thing : things) {
    if (thing.parent != parent) continue;
    if (index >= first + system.page) {
      page.next_page_token = std::to_string(index);
      break;
    }
    if (index++ < first) continue;
    page.items.push_back({thing.id, thing.uid, system.list_properties ? thing.properties : JsonText()});
  }
  return page;
}

ReadResult read(const std::vector<FakeSystem::Thing>& things, const ReadJob& job) {
  ReadResult result;
  for (const auto& id : job.native_ids) {
    const auto thing = std::ranges::find(things, id, &FakeSystem::Thing::id);
    if (thing == things.end()) {
      result.items.emplace_back(Error{Errc::kNotFound, "no such thing", {}, 0});
    } else {
      result.items.emplace_back(Item{thing->id, thing->uid, thing->properties});
    }
  }
  return result;
}

}  // namespace

JobResult FakeSystem::answer(const Job& job) const {
  static const std::vector<Thing> kNothing;
  const auto found = things.find(job.type);
  const auto& of_type = found == things.end() ? kNothing : found->second;
  if (const auto* operation = std::get_if<ListJob>(&job.operation)) return list(*this, of_type, *operation);
  if (const auto* operation = std::get_if<ReadJob>(&job.operation)) return read(of_type, *operation);
  if (std::holds_alternative<InspectJob>(job.operation)) return inspection;
  return Error{Errc::kUnsupported, "only list, read and inspect", {}, 0};
}

JobResult FakeSystem::change(const Job& job) {
  using Json = nlohmann::json;
  auto& of_type = things[job.type];
  const auto of_id = [&](const std::string& id) { return std::ranges::find(of_type, id, &Thing::id); };
  const auto done = [](const Thing& thing) {
    return MutationResult{MutationStatus::kSuccess, {}, thing.id, thing.uid, thing.properties, Millis(0)};
  };
  if (const auto* create = std::get_if<CreateJob>(&job.operation)) {
    if (const auto known = made.find(create->idempotency_key); knows_keys && known != made.end()) {
      const auto it = of_id(known->second);
      if (it != of_type.end()) return done(*it);
    }
    auto properties = Json::parse(create->properties.json);
    const auto place = create->parent ? create->parent->native_id : std::string();
    for (const auto& thing : of_type) {
      const auto name = Json::parse(thing.properties).value("name", Json());
      if (thing.parent == place && name == properties.value("name", Json())) {
        return Error{Errc::kAlreadyExists, "the name is taken", {}, 0};
      }
    }
    Thing thing;
    thing.id = names_are_ids ? properties.at("name").get<std::string>() : "made-" + std::to_string(next_id++);
    thing.uid = "uid-" + thing.id;
    thing.parent = create->parent ? create->parent->native_id : std::string();
    properties["id"] = thing.id;
    thing.properties = properties.dump();
    made[create->idempotency_key] = thing.id;
    return done(of_type.emplace_back(std::move(thing)));
  }
  if (const auto* update = std::get_if<UpdateJob>(&job.operation)) {
    const auto it = of_id(update->native_id);
    if (it == of_type.end()) return Error{Errc::kNotFound, "no such thing", {}, 0};
    if (update->precondition.uid != it->uid || update->precondition.state_hash != hex(hash128(it->properties))) {
      return Error{Errc::kConflict, "it is not as it was", {}, 0};
    }
    auto properties = Json::parse(update->desired.json);
    properties["id"] = it->id;
    it->properties = properties.dump();
    return done(*it);
  }
  const auto& remove = std::get<DeleteJob>(job.operation);
  const auto it = of_id(remove.native_id);
  if (it == of_type.end()) return Error{Errc::kNotFound, "no such thing", {}, 0};
  const auto& as = remove.precondition;
  if ((!as.uid.empty() && as.uid != it->uid) ||
      (!as.state_hash.empty() && as.state_hash != hex(hash128(it->properties)))) {
    return Error{Errc::kConflict, "it is another thing", {}, 0};
  }
  const auto lies_in_it = [&](const Thing& thing) { return thing.parent == remove.native_id; };
  if (refuses_full &&
      std::ranges::any_of(things, [&](const auto& each) { return std::ranges::any_of(each.second, lies_in_it); })) {
    return Error{Errc::kConflict, "it is not empty", {}, 0};
  }
  of_type.erase(it);
  if (holds) empty_out(remove.native_id);
  return MutationResult{MutationStatus::kSuccess, {}, remove.native_id, {}, {}, Millis(0)};
}

void FakeSystem::empty_out(const std::string& id) {
  for (auto& [type, of_type] : things) {
    std::vector<std::string> gone;
    for (const auto& thing : of_type) {
      if (thing.parent == id) gone.push_back(thing.id);
    }
    std::erase_if(of_type, [&](const Thing& thing) { return thing.parent == id; });
    for (const auto& each : gone) empty_out(each);
  }
}

Manifest make_manifest(const std::vector<std::pair<std::string, std::string>>& types, const std::string& ns) {
  Manifest manifest;
  manifest.plugin = "fake";
  manifest.ns = ns;
  manifest.version = "1.0.0";
  for (const auto& [name, parent] : types) {
    TypeDescriptor type;
    type.name = name;
    type.parent = parent;
    type.schema = R"({"type":"object"})";
    type.operations = {Operation::kList, Operation::kRead};
    manifest.types.push_back(std::move(type));
  }
  return manifest;
}

std::string manifest_hash(const Manifest& manifest) {
  const Bytes bytes = encode(manifest);
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest{};
  crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  std::string text;
  for (const auto byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

FakeWorker::FakeWorker(std::unique_ptr<Bus> bus, const Clock& clock, std::string id, Manifest manifest,
                       FakeSystem& system)
    : manifest_bytes(encode(manifest)), clock_(clock), system_(system), bus_(std::move(bus)) {
  announcement.worker = WorkerId(std::move(id));
  announcement.ns = manifest.ns;
  announcement.plugin = manifest.plugin;
  announcement.version = manifest.version;
  announcement.manifest = manifest_hash(manifest);
  announcement.slots = 4;
  announcement.host = "host";
  announcement.pid = 42;
  next_beat_ = clock_.now() + Millis(1000);
  rollcall_ = bus_->subscribe(subjects_.rollcall()).value();
  control_ = bus_->subscribe(subjects_.worker_control(announcement.ns, announcement.worker)).value();
  own_jobs_ = bus_->subscribe(subjects_.worker_job(announcement.ns, announcement.worker)).value();
  bus_->subscribe_answers(bus_->inbox() + ".>").value();
}

std::vector<Running> FakeWorker::running() const {
  std::vector<Running> running;
  for (const auto& held : held_) running.push_back({held.job.id, held.job.token});
  return running;
}

void FakeWorker::announce() {
  announcement.running = running();
  bus_->publish({subjects_.announce(announcement.ns), bus_->inbox() + ".announced", encode(announcement), {}}).value();
}

bool FakeWorker::turn() {
  std::vector<Message> inbox;
  bus_->receive(inbox, 1000);
  if (!alive) return false;
  for (const auto& message : inbox) {
    const std::string reply(message.reply);
    if (message.no_responders) continue;  // no coordinator is there: the roll call will come
    if (message.subscription == rollcall_) {
      ++rollcalls;
      announce();
    } else if (message.subscription == control_) {
      on_control(decode<Control>(message.data).value(), reply);
    } else if (message.subscription == own_jobs_ || message.subscription == group_) {
      take_job(decode<Job>(message.data).value(), reply);
    } else if (message.subject.ends_with(".ack")) {
      acks.push_back(decode<ResultAck>(message.data).value());
    } else {
      answers.push_back(decode<AnnouncementReply>(message.data).value());
      if (accepted() && group_ == 0) {
        group_ = bus_->subscribe(subjects_.job(announcement.ns, announcement.pool), kWorkersGroup).value();
      }
    }
  }
  const bool beats = clock_.now() >= next_beat_;
  if (beats) heartbeat();
  return beats || !inbox.empty();
}

TimePoint FakeWorker::next_due() const {
  return alive ? next_beat_ : TimePoint::max();
}

void FakeWorker::on_control(const Control& control, const std::string& reply) {
  controls.push_back(control);
  if (const auto* cancel = std::get_if<Cancel>(&control.action)) {
    std::erase_if(held_, [&](const Held& held) { return held.job.token == cancel->job.token; });
  } else if (const auto* go = std::get_if<Go>(&control.action)) {
    const auto it =
        std::ranges::find_if(held_, [&](const Held& held) { return held.claimed && held.job.token == go->job.token; });
    if (it == held_.end()) return;
    const Held claim = *it;
    held_.erase(it);
    begin_change(claim.job, claim.reply);
  } else if (std::holds_alternative<Drain>(control.action)) {
    draining = true;
  } else if (std::holds_alternative<SendManifest>(control.action)) {
    Job request;  // the token of the reply is in its subject
    request.fleet = control.fleet;
    request.token = Token(reply.substr(reply.rfind('.') + 1));
    if (manifest_part == 0) {
      send_reply(request, reply, ManifestBytes{manifest_bytes});
      return;
    }
    JobReply inner{control.fleet, {}, request.token, announcement.worker, 1, 0, ManifestBytes{manifest_bytes}};
    const auto whole = encode(inner);
    const auto count = (whole.size() + manifest_part - 1) / manifest_part;
    for (std::size_t i = 0; i < count; ++i) {
      send_reply(request, reply,
                 Part{static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(count),
                      whole.substr(i * manifest_part, manifest_part)});
    }
  }
}

void FakeWorker::take_job(const Job& job, const std::string& reply) {
  jobs.push_back(job);
  auto behaviour = on_job ? on_job(job) : Behaviour();
  if (std::holds_alternative<Silent>(behaviour)) return;
  if (std::holds_alternative<Busy>(behaviour)) {
    send_reply(job, reply, Busy{});
  } else if (std::holds_alternative<Hold>(behaviour)) {
    send_reply(job, reply, Accepted{});
    held_.push_back(
        {job, reply, false, is_mutation(job.operation) ? std::nullopt : std::optional(system_.answer(job))});
  } else if (auto* result = std::get_if<JobResult>(&behaviour)) {
    send_reply(job, reply, std::move(*result));
  } else if (is_mutation(job.operation)) {
    send_reply(job, reply, Accepted{});
    held_.push_back({job, reply, true, {}});
  } else {
    send_reply(job, reply, system_.answer(job));
  }
}

void FakeWorker::begin_change(const Job& job, const std::string& reply) {
  auto behaviour = on_go ? on_go(job) : Behaviour();
  if (std::holds_alternative<Silent>(behaviour)) return;
  if (std::holds_alternative<Hold>(behaviour)) {
    held_.push_back({job, reply, false, {}});
    return;
  }
  auto* given = std::get_if<JobResult>(&behaviour);
  send_reply(job, reply, given != nullptr ? std::move(*given) : system_.change(job), bus_->inbox() + ".ack");
}

void FakeWorker::release() {
  for (auto& held : std::exchange(held_, {})) {
    if (held.seen) {
      send_reply(held.job, held.reply, std::move(*held.seen));
    } else {
      send_reply(held.job, held.reply, system_.change(held.job), bus_->inbox() + ".ack");
    }
  }
}

void FakeWorker::send_late(const Job& job, JobResult result) {
  send_reply(job, subjects_.result(announcement.ns), std::move(result), bus_->inbox() + ".ack");
}

void FakeWorker::send_late_parts(const Job& job, JobResult result, const std::vector<std::uint32_t>& which) {
  const auto whole =
      encode(JobReply{job.fleet, job.id, job.token, announcement.worker, job.attempt, 1, std::move(result)});
  const std::array<Bytes, 2> halves{whole.substr(0, whole.size() / 2), whole.substr(whole.size() / 2)};
  for (const auto index : which) {
    send_reply(job, subjects_.result(announcement.ns), Part{index, 2, halves.at(index)},
               index == 1 ? bus_->inbox() + ".ack" : "");
  }
}

void FakeWorker::send_reply(const Job& job, const std::string& reply, decltype(JobReply::body) body,
                            const std::string& ack_to) {
  const JobReply message{job.fleet, job.id, job.token, announcement.worker, job.attempt, 1, std::move(body)};
  bus_->publish({reply, ack_to, encode(message), {}}).value();
}

void FakeWorker::heartbeat() {
  next_beat_ = clock_.now() + Millis(1000);
  if (persistent && answers.empty()) announce();
  Heartbeat beat;
  beat.worker = announcement.worker;
  beat.ns = announcement.ns;
  beat.pool = announcement.pool;
  beat.free_slots =
      static_cast<std::uint16_t>(announcement.slots - std::min<std::size_t>(announcement.slots, held_.size()));
  beat.draining = draining;
  beat.running = running();
  bus_->publish({subjects_.heartbeat(announcement.ns), {}, encode(beat), {}}).value();
}

}  // namespace muster::test
