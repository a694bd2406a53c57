#include "coordinator/admission.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "coordinator/must.h"
#include "schema/codec.h"
#include "schema/utf8.h"
#include "worker_sdk/bus/digest.h"

namespace muster {
namespace {

constexpr Millis kAskAgain{1000};
constexpr Millis kGiveUpAfter{60'000};  // of a manifest that nobody sends
constexpr std::size_t kMaxFetches = 256;
constexpr Millis kAnswerTime{100};                    // for which a fetch makes no room for others of its namespace
constexpr std::size_t kMaxAsked = 16;                 // of those that wait for one manifest, at a time
constexpr std::size_t kMaxPartBytes = 128ULL << 20U;  // of all manifests that are being put together
constexpr std::size_t kMaxRemembered = 4096;
constexpr std::size_t kMaxFaultBytes = 1024;  // of what is wrong with a manifest, which may quote it
// Of a namespace, whatever manifests it waits for: its key keeps nobody else out. More of them announce themselves
// again.
constexpr std::size_t kMaxWaiting = 4096;
constexpr std::size_t kMaxWaitingBytes = 8ULL << 20U;
constexpr std::size_t kMaxAllWaiting = 20'000;
constexpr std::size_t kMaxAllWaitingBytes = 64ULL << 20U;

}  // namespace

std::size_t Admission::Waiting::bytes() const {
  const auto& a = announcement;
  auto sum = sizeof(*this) + reply.size() + a.worker.value.size() + a.ns.size() + a.pool.size() + a.plugin.size() +
             a.version.size() + a.manifest.size() + a.host.size() + a.fleet.value.size();
  for (const auto& feature : a.features) sum += sizeof(feature) + feature.size();
  return sum;
}

void Admission::load() {
  for (auto& row : must(store_.manifests())) learn(row.hash, std::move(row.manifest));
}

void Admission::learn(const std::string& hash, Manifest manifest) {
  const auto ns = manifest.ns;
  for (const auto& old : registry_.learn(hash, std::make_shared<const Manifest>(std::move(manifest)))) {
    log_.info("manifest={} forgotten namespace={}: nobody serves it, and there are newer ones", old, ns);
    must(store_.drop_manifest(old));
  }
}

bool Admission::on_announcement(const Announcement& announcement, const std::string& reply, TimePoint now,
                                Effects& effects) {
  if (auto rejection = registry_.judge(announcement, store_.fleet())) {
    reject(announcement, reply, *rejection, now, effects);
    return false;
  }
  if (const auto manifest = registry_.manifest(announcement.manifest)) {
    if (manifest->ns != announcement.ns) {
      reject(announcement, reply, {"MANIFEST", "the manifest is of namespace " + manifest->ns, true}, now, effects);
      return false;
    }
    accept(announcement, reply, now, effects);
    return true;
  }
  expire(now);
  if (!wait(announcement, reply, now)) return false;
  auto& fetch = fetches_.at(announcement.manifest);
  if (fetch.asked.empty() || now - fetch.asked_at >= kAskAgain) ask(announcement.manifest, fetch, now, effects);
  return false;
}

bool Admission::wait(const Announcement& announcement, const std::string& reply, TimePoint now) {
  Waiting waiting{announcement, reply};
  waiting.announcement.running.clear();  // heartbeats say it
  const auto& ns = announcement.ns;
  const auto fetch = fetches_.find(announcement.manifest);
  const Waiting* before = nullptr;  // what it said last
  if (fetch != fetches_.end()) {
    const auto it = fetch->second.waiting.find(name_of(announcement));
    if (it != fetch->second.waiting.end()) before = &it->second;
  }
  const bool again = before != nullptr;
  const auto full = [&](const Queue& queue, std::size_t most, std::size_t most_bytes) {
    return queue.workers + (again ? 0 : 1) > most ||
           queue.bytes + waiting.bytes() - (again ? before->bytes() : 0) > most_bytes;
  };
  const auto queue = queues_.find(ns);
  if (full(queue == queues_.end() ? Queue() : queue->second, kMaxWaiting, kMaxWaitingBytes) ||
      full(all_waiting_, kMaxAllWaiting, kMaxAllWaitingBytes)) {
    return false;
  }
  if (again) waits_no_more(*before);
  if (fetch == fetches_.end()) {
    if (!make_room(ns, now)) return false;
    fetches_[announcement.manifest].ns = ns;
    ++begun_[ns];
  }
  for (auto* each : {&queues_[ns], &all_waiting_}) {
    ++each->workers;
    each->bytes += waiting.bytes();
  }
  fetches_[announcement.manifest].waiting[name_of(announcement)] = std::move(waiting);
  return true;
}

bool Admission::make_room(const std::string& ns, TimePoint now) {
  if (fetches_.size() < kMaxFetches) return true;
  const auto most = std::ranges::max_element(begun_, {}, [](const auto& entry) { return entry.second; })->first;
  auto goes = fetches_.end();
  const auto key = [](const Fetch& fetch) {  // those that are answered stay longest
    const bool answered = std::ranges::any_of(fetch.asked, [](const Asked& asked) { return asked.parts.bytes() > 0; });
    return std::pair(answered, fetch.asked_at);
  };
  for (auto it = fetches_.begin(); it != fetches_.end(); ++it) {
    if (it->second.ns == most && (goes == fetches_.end() || key(it->second) < key(goes->second))) goes = it;
  }
  if (most == ns && now - goes->second.asked_at < kAnswerTime) return false;
  give_up(goes);
  return true;
}

void Admission::waits_no_more(const Waiting& waiting) {
  const auto queue = queues_.find(waiting.announcement.ns);
  for (auto* each : {&queue->second, &all_waiting_}) {
    --each->workers;
    each->bytes -= waiting.bytes();
  }
  if (queue->second.workers == 0) queues_.erase(queue);
}

Admission::Fetches::iterator Admission::give_up(Fetches::iterator fetch) {
  for (const auto& [worker, waiting] : fetch->second.waiting) waits_no_more(waiting);
  const auto begun = begun_.find(fetch->second.ns);
  if (--begun->second == 0) begun_.erase(begun);
  return fetches_.erase(fetch);
}

void Admission::expire(TimePoint now) {
  for (auto it = fetches_.begin(); it != fetches_.end();) {
    it = now - it->second.asked_at > kGiveUpAfter ? give_up(it) : std::next(it);
  }
}

/// One after the other: who announces the hash of somebody else's manifest keeps nobody out.
void Admission::ask(const std::string& hash, Fetch& fetch, TimePoint now, Effects& effects) {
  auto next = fetch.asked.empty() ? fetch.waiting.begin() : fetch.waiting.upper_bound(fetch.asked.back().worker);
  if (next == fetch.waiting.end()) next = fetch.waiting.begin();
  const auto& from = next->first;
  const auto before = std::ranges::find(fetch.asked, from, &Asked::worker);
  if (before != fetch.asked.end()) {
    std::rotate(before, before + 1, fetch.asked.end());
  } else {
    if (fetch.asked.size() >= kMaxAsked) fetch.asked.erase(fetch.asked.begin());
    fetch.asked.push_back({from, Token(make_token(random_)), {}});
  }
  fetch.asked_at = now;
  effects.at_once.push_back({subjects_.worker_control(from.ns, from.id),
                             subjects_.reply(from.ns, self_, fetch.asked.back().token),
                             encode(Control{store_.fleet(), SendManifest{hash}}),
                             {}});
}

std::optional<std::string> Admission::asked_namespace(const Token& token) const {
  for (const auto& [hash, fetch] : fetches_) {
    const auto asked = std::ranges::find(fetch.asked, token, &Asked::token);
    if (asked != fetch.asked.end()) return asked->worker.ns;
  }
  return std::nullopt;
}

void Admission::on_reply(const JobReply& reply, TimePoint now, Effects& effects) {
  for (auto& [hash, fetch] : fetches_) {
    const auto asked = std::ranges::find(fetch.asked, reply.token, &Asked::token);
    if (asked == fetch.asked.end()) continue;
    const auto manifest = manifest_in(reply, *asked);
    if (manifest) on_manifest(std::string(hash), Asked(*asked), *manifest, now, effects);
    return;
  }
}

std::optional<Bytes> Admission::manifest_in(const JobReply& reply, Asked& asked) {
  if (const auto* manifest = std::get_if<ManifestBytes>(&reply.body)) return manifest->encoded;
  const auto* part = std::get_if<Part>(&reply.body);
  if (part == nullptr) return std::nullopt;
  auto held = part->data.size();
  for (const auto& [hash, fetch] : fetches_) {
    for (const auto& one : fetch.asked) held += one.parts.bytes();
  }
  if (held > kMaxPartBytes) drop_most_parts();
  auto whole = asked.parts.add(*part);
  if (!whole) {  // it may be the first of another answer
    asked.parts = {};
    whole = asked.parts.add(*part);
  }
  if (!whole || !*whole) return std::nullopt;
  asked.parts = {};
  const auto inner = decode<JobReply>(**whole);
  const auto* manifest = inner ? std::get_if<ManifestBytes>(&inner->body) : nullptr;
  return manifest == nullptr ? std::nullopt : std::optional(manifest->encoded);
}

/// They are asked for again, one after the other.
void Admission::drop_most_parts() {
  std::map<std::string, std::size_t> held;  // by namespace
  for (const auto& [hash, fetch] : fetches_) {
    for (const auto& asked : fetch.asked) held[asked.worker.ns] += asked.parts.bytes();
  }
  const auto most = std::ranges::max_element(held, {}, [](const auto& entry) { return entry.second; })->first;
  for (auto& [hash, fetch] : fetches_) {
    for (auto& asked : fetch.asked) {
      if (asked.worker.ns == most) asked.parts = {};
    }
  }
}

/// Of the others that wait for it nothing is known.
void Admission::on_wrong_manifest(const std::string& hash, const Asked& from, TimePoint now, Effects& effects) {
  auto& fetch = fetches_.at(hash);
  std::erase_if(fetch.asked, [&](const Asked& asked) { return asked.worker == from.worker; });
  const auto liar = fetch.waiting.find(from.worker);
  if (liar != fetch.waiting.end()) {
    waits_no_more(liar->second);
    reject(liar->second.announcement, liar->second.reply,
           {"MANIFEST", "the manifest's SHA-256 is not the hash that was announced", true}, now, effects);
    fetch.waiting.erase(liar);
  }
  fetch.waiting.empty() ? static_cast<void>(give_up(fetches_.find(hash))) : ask(hash, fetch, now, effects);
}

void Admission::on_manifest(const std::string& hash, const Asked& from, const Bytes& encoded, TimePoint now,
                            Effects& effects) {
  if (sha256_hex(encoded) != hash) return on_wrong_manifest(hash, from, now, effects);
  auto& fetch = fetches_.at(hash);
  const auto waiting = fetch.waiting;
  give_up(fetches_.find(hash));
  auto manifest = decode<Manifest>(encoded);
  std::optional<std::string> fault;
  if (!manifest) {
    fault = manifest.error().message;
  } else {
    fault = manifest_fault(*manifest, manifest->ns);
  }
  if (fault) fault = std::string(utf8_prefix(*fault, kMaxFaultBytes));
  const auto ns = manifest ? manifest->ns : std::string();
  const bool theirs = std::ranges::any_of(waiting, [&](const auto& one) { return one.second.announcement.ns == ns; });
  if (!fault && theirs) {
    must(store_.put_manifest({hash, *manifest, clock_.wall()}));
    learn(hash, std::move(*manifest));
  }
  for (const auto& [worker, one] : waiting) {
    if (fault) {
      reject(one.announcement, one.reply, {"MANIFEST", *fault, true}, now, effects);
    } else if (ns != one.announcement.ns) {
      reject(one.announcement, one.reply, {"MANIFEST", "the manifest is of namespace " + ns, true}, now, effects);
    } else if (const auto rejection = registry_.judge(one.announcement, store_.fleet())) {  // others came meanwhile
      reject(one.announcement, one.reply, *rejection, now, effects);
    } else {
      accept(one.announcement, one.reply, now, effects);
    }
  }
}

void Admission::accept(const Announcement& announcement, const std::string& reply, TimePoint now, Effects& effects) {
  last_rejection_.erase(name_of(announcement));
  const auto change = registry_.accept(announcement, now, clock_.wall());
  if (change == Registry::Change::kJoined || change == Registry::Change::kReturned) {
    log_.info("worker={} joined namespace={} pool={} plugin={} version={} slots={} host={}", announcement.worker.value,
              announcement.ns, announcement.pool, announcement.plugin, announcement.version, announcement.slots,
              announcement.host);
    events_.emit(announcement.ns, "worker.joined", announcement.worker.value,
                 JsonObject()
                     .text("worker", announcement.worker.value)
                     .text("pool", announcement.pool)
                     .text("plugin", announcement.plugin)
                     .text("version", announcement.version)
                     .text("host", announcement.host)
                     .number("pid", announcement.pid)
                     .number("slots", announcement.slots),
                 now);
  }
  answer(reply, std::nullopt, effects);
}

void Admission::reject(const Announcement& announcement, const std::string& reply, const Rejection& why, TimePoint now,
                       Effects& effects) {
  const auto last = last_rejection_.find(name_of(announcement));
  if (last == last_rejection_.end() || last->second != why) tell(announcement, why, now);
  answer(reply, why, effects);
}

void Admission::tell(const Announcement& announcement, const Rejection& why, TimePoint now) {
  const bool told = rejections_.emit(announcement.ns, "worker.rejected", announcement.worker.value,
                                     JsonObject()
                                         .text("worker", announcement.worker.value)
                                         .text("plugin", announcement.plugin)
                                         .text("host", announcement.host)
                                         .text("code", why.code)
                                         .text("message", why.message),
                                     now);
  if (!told) return;
  if (last_rejection_.size() >= kMaxRemembered) last_rejection_.clear();
  last_rejection_[name_of(announcement)] = why;
  log_.warn("worker={} rejected code={} {}", announcement.worker.value, why.code, why.message);
}

void Admission::answer(const std::string& reply, std::optional<Rejection> rejected, Effects& effects) const {
  if (reply.empty()) return;
  effects.after_commit.push_back(
      {reply, {}, encode(AnnouncementReply{store_.fleet(), self_, std::move(rejected), {}}), {}});
}

}  // namespace muster
