#include "writes.h"

#include <limits>
#include <string_view>

#include "view.h"

namespace muster::fs {
namespace {

constexpr std::uint32_t kDirectoryMode = 0755, kFileMode = 0644;
constexpr const char* kNeverAbsent = "cannot be absent";  // it would be missed in what is there, for ever

/// What a declaration says.
struct Wanted {
  std::string path{};
  Attributes attributes{};
  std::optional<std::string> content{};  // of a file
  std::optional<std::string> target{};   // of a link; bytes
};

enum class ReadOnly : std::uint8_t { kRefused, kIgnored };

/// "0644", the one spelling.
std::optional<std::uint32_t> parse_mode(const Json& value) {
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() != 4 || text.find_first_not_of("01234567") != std::string::npos) return std::nullopt;
  std::uint32_t mode = 0;
  for (const char digit : text) mode = mode * 8 + static_cast<std::uint32_t>(digit - '0');
  return mode;
}

std::optional<std::uint32_t> parse_owner(const Json& value) {
  // The largest number means `unchanged` to the system.
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max() - 1;
  if (!value.is_number_integer() || value < 0 || value > kMost) return std::nullopt;
  return value.get<std::uint32_t>();
}

bool is_read_only(Kind kind, std::string_view key) {
  if (kind == Kind::kFile) return key == "size" || key == "mtime" || key == "sha256";
  return kind == Kind::kSymlink && key == "mode";
}

/// `properties`   null stands for absence
Result<Wanted> wanted_of(Kind kind, const Json& properties, ReadOnly read_only) {
  Wanted wanted;
  for (const auto& entry : properties.items()) {
    const auto& key = entry.key();
    const auto& value = entry.value();
    const auto wrong = [&](const std::string& what) { return invalid_request("properties." + key + ": " + what); };
    if (value.is_null()) {
      if (key == "uid" || key == "gid") return wrong(kNeverAbsent);
      continue;
    }
    if (is_read_only(kind, key)) {
      if (read_only == ReadOnly::kRefused) return wrong("is read-only");
    } else if (key == "path") {
      if (!value.is_string()) return wrong("must be an absolute path");
      wanted.path = value.get<std::string>();
    } else if (key == "mode") {
      wanted.attributes.mode = parse_mode(value);
      if (!wanted.attributes.mode) return wrong("must be four octal digits in a string, as \"0644\"");
    } else if (key == "uid" || key == "gid") {
      auto& field = key == "uid" ? wanted.attributes.uid : wanted.attributes.gid;
      field = parse_owner(value);
      if (!field) return wrong("must be a whole number from 0 to 4294967294");
    } else if (key == "content" && kind == Kind::kFile) {
      if (!value.is_string()) return wrong("must be a string");
      wanted.content = value.get<std::string>();
    } else if (key == "target" && kind == Kind::kSymlink) {
      if (value.is_string()) wanted.target = percent_decode(value.get<std::string>());
      if (!wanted.target || wanted.target->empty() || wanted.target->find('\0') != std::string::npos) {
        return wrong("must be a path");
      }
      // Another spelling would never be read back.
      if (const auto escaped = percent_encode(*wanted.target); value != escaped) {
        return wrong("is not in its escaped form, which is " + escaped);
      }
    } else {
      return wrong("unknown property");
    }
  }
  if (wanted.path.empty()) return invalid_request("properties.path: is missing");
  if (kind == Kind::kSymlink && !wanted.target) return invalid_request("properties.target: is missing");
  return wanted;
}

/// The mode of an object of which none is wanted.
void set_default_mode(Kind kind, Attributes& attributes) {
  if (attributes.mode || kind == Kind::kSymlink) return;
  attributes.mode = kind == Kind::kDirectory ? kDirectoryMode : kFileMode;
}

/// Of an update: `desired` is whole, so what `prior` has and it has not is declared as absent.
Result<void> put_absent(Kind kind, const Json& prior, const Json& desired, Wanted& wanted) {
  const auto absent = [&](const char* key) {
    return !prior.value(key, Json()).is_null() && desired.value(key, Json()).is_null();
  };
  for (const std::string key : {"uid", "gid"}) {
    if (absent(key.c_str())) return invalid_request("properties." + key + ": " + kNeverAbsent);
  }
  if (absent("mode")) set_default_mode(kind, wanted.attributes);
  return {};
}

bool has_attributes(const Status& status, const Attributes& wanted) {
  return (status.kind == Kind::kSymlink || status.mode == wanted.mode.value_or(status.mode)) &&
         status.uid == wanted.uid.value_or(status.uid) && status.gid == wanted.gid.value_or(status.gid);
}

/// Whether there is nothing left to do.
bool is_as_wanted(const Place& place, const Status& status, const Wanted& wanted) {
  if (!has_attributes(status, wanted.attributes)) return false;
  if (wanted.content && !has_content(place.parent, place.name, *wanted.content)) return false;
  if (!wanted.target) return true;
  const auto target = link_target(place.parent, place.name);
  return target && *target == *wanted.target;
}

Result<void> make(Kind kind, const Place& place, const Wanted& wanted, const std::string& mark) {
  if (kind == Kind::kDirectory) return create_directory(place.parent, place.name, wanted.attributes, mark);
  if (kind == Kind::kFile) return create_file(place.parent, place.name, *wanted.content, wanted.attributes, mark);
  return create_link(place.parent, place.name, *wanted.target, wanted.attributes);
}

/// Whether what has the name is what an earlier call with this key made: its mark says so, or, where there are none,
/// that it is exactly what was wanted.
bool is_ours(Kind kind, const Place& place, const Status& status, const Wanted& wanted, const std::string& key) {
  if (key.empty()) return false;
  if (kind != Kind::kSymlink) {
    if (const auto mark = mark_of(place.parent, place.name)) return *mark == key;
  }
  return is_as_wanted(place, status, wanted);
}

/// The object after a change that gave it what is declared: systems leave out some of it without saying so.
Result<Mutation> changed(View& view, Kind kind, const Place& place, const std::string& native_id,
                         const Attributes& declared) {
  auto seen = view.look(kind, place.parent, place.name, native_id);
  if (!seen) return not_stabilized(native_id + ": was changed, and then: " + seen.error().message);
  if (!has_attributes(seen->status, declared)) {
    return not_stabilized(native_id + ": the system does not keep its mode or owner as declared");
  }
  return Mutation(std::move(seen->resource));
}

}  // namespace

Result<Mutation> create(Kind kind, Sweeper& sweeper, const CreateRequest& request, JobContext& context) {
  auto wanted = wanted_of(kind, request.properties, ReadOnly::kRefused);
  if (!wanted) return wanted.error();
  const auto declared = wanted->attributes;
  set_default_mode(kind, wanted->attributes);
  if (kind == Kind::kFile && !wanted->content) wanted->content = "";

  auto view = View::open(request.target, context.stop_token());
  if (!view) return unseen(view.error());
  const auto place = view->place_of(wanted->path);
  if (!place) return unseen(place.error());
  if (context.stop_token().stop_requested()) return failure(Errc::kCancelled, wanted->path + ": cancelled");
  sweeper.visit(place->parent);

  const auto made = make(kind, *place, *wanted, request.idempotency_key);
  if (!made && made.error().code == Errc::kAlreadyExists) {
    const auto status = status_of(place->parent, place->name);
    if (status && status->kind != kind) {
      return invalid_request(wanted->path + ": what is there is no " + request.type);
    }
    if (!status || !is_ours(kind, *place, *status, *wanted, request.idempotency_key)) {
      return already_exists(wanted->path + ": exists");
    }
  } else if (!made) {
    return at(wanted->path, made.error());
  }
  return changed(*view, kind, *place, wanted->path, made ? declared : Attributes());
}

Result<Mutation> update(Kind kind, Sweeper& sweeper, const UpdateRequest& request, JobContext& context) {
  const auto& id = request.native_id;
  auto wanted = wanted_of(kind, request.desired, ReadOnly::kIgnored);
  if (!wanted) return wanted.error();
  if (wanted->path != id) return invalid_request("properties.path: is set by create only");
  if (auto put = put_absent(kind, request.prior, request.desired, *wanted); !put) return put.error();

  auto view = View::open(request.target, context.stop_token());
  if (!view) return unseen(view.error());
  const auto place = view->place_of(id);
  if (!place) return place.error();
  if (context.stop_token().stop_requested()) return failure(Errc::kCancelled, id + ": cancelled");
  sweeper.visit(place->parent);

  auto seen = view->look(kind, place->parent, place->name, id);
  if (!seen) return seen.error();
  const auto& status = seen->status;
  // As after this very change, whose answer was lost: the precondition is about what was there before.
  if (is_as_wanted(*place, status, *wanted)) return Mutation(std::move(seen->resource));
  if (violates(request.precondition, seen->resource)) {
    return conflict(id + ": is not as it was when the change was planned");
  }

  auto& attributes = wanted->attributes;
  const auto declared = attributes;
  Result<void> done;
  const auto target = kind == Kind::kSymlink ? link_target(place->parent, place->name) : Result<std::string>("");
  if (wanted->content && !has_content(place->parent, place->name, *wanted->content)) {
    const auto mark = mark_of(place->parent, place->name);
    attributes = {attributes.mode.value_or(status.mode), attributes.uid.value_or(status.uid),
                  attributes.gid.value_or(status.gid)};
    done =
        replace_file(place->parent, place->name, status, *wanted->content, attributes, mark ? mark->value_or("") : "");
  } else if (wanted->target && target && *target != *wanted->target) {
    attributes = {{}, attributes.uid.value_or(status.uid), attributes.gid.value_or(status.gid)};
    done = replace_link(place->parent, place->name, status, *wanted->target, attributes);
  } else {
    done = set_attributes(place->parent, place->name, status, attributes);
  }
  if (!done) return at(id, done.error());
  return changed(*view, kind, *place, id, declared);
}

Result<Mutation> remove(Kind kind, Sweeper& sweeper, const DeleteRequest& request, JobContext& context) {
  const auto& id = request.native_id;
  auto view = View::open(request.target, context.stop_token());
  if (!view) return unseen(view.error());
  const auto place = view->place_of(id);
  if (!place) return place.error();
  if (context.stop_token().stop_requested()) return failure(Errc::kCancelled, id + ": cancelled");
  sweeper.visit(place->parent);

  const auto seen = view->look(kind, place->parent, place->name, id);
  if (!seen) return seen.error();
  if (violates(request.precondition, seen->resource)) {
    return conflict(id + ": is not as it was when its deletion was planned");
  }
  if (auto gone = fs::remove(place->parent, place->name, kind); !gone) return at(id, gone.error());
  return Mutation::deleted();
}

}  // namespace muster::fs
