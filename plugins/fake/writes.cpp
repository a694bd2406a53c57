#include "writes.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <utility>

#include <sodium.h>

namespace muster::fake {
namespace {

enum WriteDraw : std::uint64_t { kHang = 100, kHangTime, kCrashBefore, kBefore, kCrashAfter, kAfter, kAsync };

constexpr std::array<std::string_view, 6> kReadOnly = {"created_at", "endpoint", "id", "index", "payload", "revision"};

std::string random_hex() {
  std::array<unsigned char, 6> bytes{};
  randombytes_buf(bytes.data(), bytes.size());
  std::array<char, 13> hex{};
  sodium_bin2hex(hex.data(), hex.size(), bytes.data(), bytes.size());
  return hex.data();
}

/// Random, not of the name: a create that is done twice makes two.
std::string new_id(const Object& object) {
  if (object.type == kPartType) return object.parent + "/part-w-" + random_hex();
  return "thing" + object.type.substr(std::string_view("FAKE::Cloud::Thing").size()) + "-w-" + random_hex();
}

std::string hash_of(std::string_view secret, std::string_view salt) {
  const auto text = std::string(salt) + ':' + std::string(secret);
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest{};
  crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(text.data()), text.size());
  std::array<char, 2 * crypto_hash_sha256_BYTES + 1> hex{};
  sodium_bin2hex(hex.data(), hex.size(), digest.data(), digest.size());
  return hex.data();
}

std::string rfc3339(std::int64_t millis) {
  const std::time_t seconds = millis / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900, parts.tm_mon + 1,
                parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, static_cast<int>(millis % 1000));
  return text.data();
}

bool is_read_only(std::string_view key) {
  return std::find(kReadOnly.begin(), kReadOnly.end(), key) != kReadOnly.end();
}

/// What a declaration says, checked, in the cloud's own spelling.
struct Wanted {
  Json properties = Json::object();  // writable ones; without the secret
  std::optional<std::string> secret;

  [[nodiscard]] std::string text(const char* key) const { return properties.value(key, std::string()); }
};

/// Tags in the order of their keys; none when they are no tags.
std::optional<Json> sorted_tags(Json tags) {
  if (!tags.is_array()) return std::nullopt;
  for (const auto& tag : tags) {
    const auto holds = [&](const char* key) { return tag.contains(key) && tag[key].is_string(); };
    if (!tag.is_object() || tag.size() != 2 || !holds("Key") || !holds("Value")) return std::nullopt;
  }
  const auto key = [](const Json& tag) -> const std::string& { return tag["Key"].get_ref<const std::string&>(); };
  std::sort(tags.begin(), tags.end(), [&](const Json& a, const Json& b) { return key(a) < key(b); });
  const auto twice = std::adjacent_find(tags.begin(), tags.end(), [&](auto& a, auto& b) { return key(a) == key(b); });
  if (twice != tags.end()) return std::nullopt;
  return tags;
}

enum class ReadOnly : std::uint8_t { kRefused, kIgnored };

/// `declared`   null stands for absence
Result<Wanted> wanted_of(const Json& declared, std::string_view type, ReadOnly read_only) {
  const bool part = type == kPartType;
  Wanted wanted;
  wanted.properties = {{"notes", ""}, {"size", 0}};
  for (const auto& entry : declared.items()) {
    const auto& key = entry.key();
    const auto& value = entry.value();
    const auto wrong = [&](const std::string& what) { return invalid_request("properties." + key + ": " + what); };
    if (value.is_null()) continue;
    if (is_read_only(key)) {
      if (read_only == ReadOnly::kRefused) return wrong("is read-only");
      continue;
    }
    if (key == "Tags") {
      auto tags = sorted_tags(value);
      if (!tags) return wrong("must be a list of {Key, Value}, both strings, with each Key once");
      wanted.properties[key] = std::move(*tags);
      continue;
    }
    if (key == "size") {
      if (!value.is_number_integer() || value < 0) return wrong("must be a whole number, 0 or more");
      wanted.properties[key] = value;
      continue;
    }
    const bool known = key == "name" || key == "notes" || key == "document" || key == "owner" || key == "region" ||
                       key == "secret" || (key == "thing" && part);
    if (!known) return wrong("unknown property");
    if (!value.is_string()) return wrong("must be a string");
    auto text = value.get<std::string>();
    if (key == "document") {
      const auto document = Json::parse(text, nullptr, false);
      if (document.is_discarded()) return wrong("must hold JSON");
      text = document.dump();
    }
    if (key == "secret") {
      wanted.secret = std::move(text);
    } else {
      wanted.properties[key] = std::move(text);
    }
  }
  if (wanted.text("name").empty()) return invalid_request("properties.name: is missing");
  return wanted;
}

/// Writes what is wanted into the object's properties, beside what only the cloud sets.
void put(Object& object, const Wanted& wanted) {
  auto properties = wanted.properties;
  if (!object.properties.empty()) {
    const auto present = Json::parse(object.properties);
    for (const auto key : kReadOnly) {
      if (const auto found = present.find(key); found != present.end()) properties[std::string(key)] = *found;
    }
    for (const auto* create_only : {"region", "thing"}) {
      if (present.contains(create_only)) properties[create_only] = present[create_only];
    }
  } else {
    properties["id"] = object.native_id;
    properties["endpoint"] = "https://" + percent_encode(object.native_id) + ".fake.invalid";
    properties["created_at"] = rfc3339(object.created_at);
  }
  properties["revision"] = object.revision;
  object.name = wanted.text("name");
  object.properties = properties.dump();
  if (wanted.secret) object.secret_hash = hash_of(*wanted.secret, object.uid);
}

/// When a change that begins now is done; from then on its status is success.
std::int64_t begin_request(State& state, const Config& config, std::int64_t now, const Call& call,
                           std::string_view operation, const Object& object, std::string_view idempotency_key) {
  const auto time = std::chrono::ceil<std::chrono::milliseconds>(config.async_ms.of(mix(call.hash(), kAsync))).count();
  if (time == 0) return now;
  state.save(Request{std::string(operation) + "-" + random_hex() + random_hex(), std::string(operation), object.type,
                     object.native_id, now + time},
             idempotency_key);
  return now + time;
}

/// The answer to a change that was made, now or by an earlier call with this key.
Mutation answer(State& state, std::int64_t now, std::string_view operation, const Object& object,
                std::string_view idempotency_key) {
  const auto request = state.request_of(operation, idempotency_key, object.native_id);
  if (request && now < request->ready_at) return Mutation::in_progress(request->id, object.native_id);
  if (operation == "delete") return Mutation::deleted();
  return object.resource();
}

/// Runs `act(state, call)` between what goes wrong before and after it, as one transaction.
template <typename Request, typename Act>
Result<Mutation> carry_out(const Config& config, std::int64_t now, const Request& request, const CallInfo& info,
                           JobContext& context, Act act) {
  auto state = State::open(config.state, request.target);
  if (!state) return state.error();
  Call call(*state, config, now, info, context.stop_token());
  if (auto error = call.before()) return *error;
  auto done = state->transaction([&] { return act(*state, call); });
  if (!done) return done;
  if (auto error = call.after()) return *error;
  return done;
}

Error refuse(Call& call, Error error, std::string_view native_id = {}) {
  call.refused(errc_name(error.code), native_id);
  return error;
}

}  // namespace

bool take_time(std::chrono::microseconds time, const std::stop_token& stop) {
  if (time.count() > 0) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, stop, time, [] { return false; });
  }
  return !stop.stop_requested();
}

Call::Call(State& state, const Config& config, std::int64_t now, const CallInfo& info, std::stop_token stop)
    : state_(state), native_id_(info.native_id), stop_(std::move(stop)) {
  if (const auto found = config.fail.find(info.operation); found != config.fail.end()) failures_ = found->second;
  if (const auto found = config.fail_names.find(info.name); found != config.fail_names.end()) always_ = found->second;
  if (failures_.stubborn) stop_ = {};
  const auto before = state_.transaction([&] {
    const auto count = state_.calls(info.operation, info.idempotency_key);
    number_ = state_.begin_call(now, info.operation, info.type, info.native_id, info.name, info.idempotency_key);
    return count;
  });
  const auto question = mix_text(mix_text(mix_text(config.seed, "call"), info.operation), info.idempotency_key);
  hash_ = mix(question, static_cast<std::uint64_t>(before));
}

std::optional<Error> Call::hang(const Latency& time) {
  if (time.high <= 0 || !drawn(failures_.hang_rate, kHang)) return std::nullopt;
  if (take_time(time.of(mix(hash_, kHangTime)), stop_)) return std::nullopt;
  return failure(Errc::kCancelled, "cancelled");
}

Error Call::failed(std::string_view when) const {
  auto error = failure(failures_.code, "the config makes this call fail " + std::string(when));
  if (error.code == Errc::kThrottling) error.retry_after = kRetryAfter;
  return error;
}

std::optional<Error> Call::before() {
  if (auto cancelled = hang(failures_.hang_before_ms)) return refuse(*this, *cancelled, native_id_);
  if (drawn(failures_.crash_before, kCrashBefore)) {
    refused("killed", native_id_);
    raise(SIGKILL);
  }
  if (always_) return refuse(*this, failure(*always_, "the config makes this name fail"), native_id_);
  if (drawn(failures_.before, kBefore)) return refuse(*this, failed("before it acts"), native_id_);
  return std::nullopt;
}

void Call::refused(std::string_view outcome, std::string_view native_id) {
  state_.end_call(number_, outcome, native_id);
}

void Call::done(std::string_view outcome, std::string_view native_id) {
  std::string text(outcome);
  if (drawn(failures_.crash_after, kCrashAfter)) {
    text += ", then killed";
  } else if (drawn(failures_.after, kAfter)) {
    text += ", then " + std::string(errc_name(failures_.code));
  }
  state_.end_call(number_, text, native_id);
}

std::optional<Error> Call::after() {
  if (auto cancelled = hang(failures_.hang_after_ms)) return cancelled;
  if (drawn(failures_.crash_after, kCrashAfter)) raise(SIGKILL);
  if (drawn(failures_.after, kAfter)) return failed("after it acted");
  return std::nullopt;
}

std::optional<Object> find(State& state, const Cloud& cloud, std::string_view type, std::string_view native_id) {
  auto found = state.find(type, native_id);
  if (found && !found->computed) return found;
  auto resource = cloud.find(type, native_id);
  if (!resource) return std::nullopt;
  Object object = found.value_or(Object{});
  if (!found) {
    const auto properties = resource->properties.json();
    object.type = type;
    object.native_id = native_id;
    object.uid = resource->uid;
    object.name = properties["name"];
    object.properties = resource->properties.text();
    object.revision = properties["revision"];
    object.computed = true;
  }
  if (type == kPartType) {
    object.parent = native_id.substr(0, native_id.find('/'));
    const auto thing = state.find(thing_type(0), object.parent);
    if (thing && thing->deleted && !object.deleted) {
      object.deleted = true;
      object.gone_at = thing->gone_at;
    }
  }
  return object;
}

Result<Mutation> create(const Config& config, std::int64_t now, const CreateRequest& request, JobContext& context) {
  auto wanted = wanted_of(request.properties, request.type, ReadOnly::kRefused);
  if (!wanted) return wanted.error();
  const bool part = request.type == kPartType;
  if (part && request.parent && wanted->text("thing").empty()) {
    wanted->properties["thing"] = request.parent->native_id;
  }
  Object object;
  object.parent = wanted->text("thing");
  if (part && object.parent.empty()) return invalid_request("properties.thing: is missing");
  object.type = request.type;
  object.idempotency_key = request.idempotency_key;
  object.name = wanted->text("name");
  object.uid = random_hex();
  object.created_at = now;
  const auto& key = request.idempotency_key;

  const CallInfo info{"create", request.type, {}, object.name, key};
  return carry_out(config, now, request, info, context, [&](State& state, Call& call) -> Result<Mutation> {
    if (const auto made = state.made_with(request.type, key)) {
      if (made->deleted) return refuse(call, not_found("made with this key, and deleted since"), made->native_id);
      call.done("again", made->native_id);
      return answer(state, now, "create", *made, key);
    }
    if (part) {
      const auto thing = find(state, Cloud(config), thing_type(0), object.parent);
      if (!thing || thing->deleted) {
        return refuse(call, invalid_request("properties.thing: there is no thing " + object.parent));
      }
    }
    const auto same = state.named(request.type, object.parent, object.name);
    if (same && config.unique_names) {
      return refuse(call, already_exists("there is one named " + object.name), same->native_id);
    }
    object.native_id = new_id(object);
    object.visible_at = begin_request(state, config, now, call, "create", object, key) + config.consistency_ms;
    put(object, *wanted);
    state.save(object);
    call.done("applied", object.native_id);
    return answer(state, now, "create", object, key);
  });
}

Result<Mutation> update(const Config& config, std::int64_t now, const UpdateRequest& request, JobContext& context) {
  const auto wanted = wanted_of(request.desired, request.type, ReadOnly::kIgnored);
  if (!wanted) return wanted.error();
  const auto& id = request.native_id;
  const auto& key = request.idempotency_key;

  const CallInfo info{"update", request.type, id, wanted->properties["name"].get_ref<const std::string&>(), key};
  return carry_out(config, now, request, info, context, [&](State& state, Call& call) -> Result<Mutation> {
    auto object = find(state, Cloud(config), request.type, id);
    if (!object || (object->deleted && object->gone_at <= now)) {
      return refuse(call, not_found("no " + request.type + " " + id), id);
    }
    if (object->deleted) return refuse(call, conflict(id + " is being deleted"), id);
    if (state.applied("update", key, id)) {
      call.done("again", id);
      return answer(state, now, "update", *object, key);
    }
    if (violates(request.precondition, object->resource())) {
      return refuse(call, conflict(id + " is not as it was when the change was planned"), id);
    }
    const auto present = Json::parse(object->properties);
    for (const auto* create_only : {"region", "thing"}) {
      if (wanted->properties.contains(create_only) &&
          wanted->properties[create_only] != present.value(create_only, Json())) {
        return refuse(call, invalid_request(std::string("properties.") + create_only + ": is set by create only"), id);
      }
    }
    const auto same = state.named(request.type, object->parent, wanted->text("name"));
    if (same && same->native_id != id && config.unique_names) {
      return refuse(call, already_exists("there is another one named " + wanted->text("name")), id);
    }
    ++object->revision;
    put(*object, *wanted);
    begin_request(state, config, now, call, "update", *object, key);
    state.save(*object);
    call.done("applied", id);
    return answer(state, now, "update", *object, key);
  });
}

Result<Mutation> remove(const Config& config, std::int64_t now, const DeleteRequest& request, JobContext& context) {
  const auto& id = request.native_id;
  const auto& key = request.idempotency_key;

  const CallInfo info{"delete", request.type, id, {}, key};
  return carry_out(config, now, request, info, context, [&](State& state, Call& call) -> Result<Mutation> {
    auto object = find(state, Cloud(config), request.type, id);
    if (!object || object->deleted) {
      const bool going = object && now < object->gone_at;
      if (going && !state.request_of("delete", key, id)) return refuse(call, conflict(id + " is being deleted"), id);
      call.done(object && state.applied("delete", key, id) ? "again" : "absent", id);
      return object ? answer(state, now, "delete", *object, key) : Mutation::deleted();
    }
    if (violates(request.precondition, object->resource())) {
      return refuse(call, conflict(id + " is not as it was when its deletion was planned"), id);
    }
    object->deleted = true;
    object->gone_at = begin_request(state, config, now, call, "delete", *object, key);
    state.save(*object);
    state.remove_parts(id, object->gone_at);
    call.done("applied", id);
    return answer(state, now, "delete", *object, key);
  });
}

Result<Mutation> status(const Config& config, std::int64_t now, const StatusRequest& request, JobContext& context) {
  const CallInfo info{"status", request.type, request.native_id, {}, request.request_id};
  return carry_out(config, now, request, info, context, [&](State& state, Call& call) -> Result<Mutation> {
    const auto asked = state.request(request.request_id);
    if (!asked || asked->type != request.type) {
      return refuse(call, not_found("no request " + request.request_id), request.native_id);
    }
    if (now < asked->ready_at) {
      call.done("in progress", asked->native_id);
      return Mutation::in_progress(asked->id, asked->native_id);
    }
    const auto object = find(state, Cloud(config), asked->type, asked->native_id);
    if (asked->operation != "delete" && (!object || object->deleted)) {
      return refuse(call, not_found(asked->native_id + " was deleted since"), asked->native_id);
    }
    call.done("done", asked->native_id);
    return asked->operation == "delete" ? Mutation::deleted() : Mutation(object->resource());
  });
}

}  // namespace muster::fake
