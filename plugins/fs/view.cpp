#include "view.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <string_view>

namespace muster::fs {
namespace {

constexpr std::uint64_t kIdBytesPerPage = 1 << 20;
// A page that hashes ends after so much, so that neither huge files nor a slow disk make one job long.
constexpr std::uint64_t kHashBytesPerPage = 256ULL << 20;
constexpr std::chrono::seconds kHashTimePerPage{2};

/// The names between the slashes of what follows a first slash.
Result<std::vector<std::string>> split(std::string_view path) {
  std::vector<std::string> names;
  while (!path.empty()) {
    path.remove_prefix(1);
    const auto name = path.substr(0, path.find('/'));
    if (name.empty() || name == "." || name == ".." || name.find('\0') != name.npos) {
      return invalid_request("is not a plain absolute path");
    }
    names.emplace_back(name);
    path.remove_prefix(name.size());
  }
  return names;
}

Result<std::string> parse_root(std::string text) {
  if (text.empty() || text.front() != '/') return invalid_request("config.root: must be an absolute path");
  while (!text.empty() && text.back() == '/') text.pop_back();
  if (!split(text)) return invalid_request("config.root: must have no empty, '.' or '..' component: " + text);
  return text;
}

/// Whether a path is the root, or of something below it.
bool is_within_root(const Config& config, std::string_view path) {
  return path == config.root_path() ||
         (path.starts_with(config.root) && path.substr(config.root.size()).starts_with('/'));
}

/// The names that lead from the root to a native id; none for the root itself.
Result<std::vector<std::string>> names_below(const Config& config, const std::string& native_id) {
  const auto path = percent_decode(native_id);
  if (const auto escaped = percent_encode(path); escaped != native_id) {
    return invalid_request(native_id + ": is not a path in its escaped form, which is " + escaped);
  }
  if (path == config.root_path()) return std::vector<std::string>{};
  if (!is_within_root(config, path)) {
    return invalid_request(native_id + ": is not below the target's root " + config.root_path());
  }
  auto names = split(std::string_view(path).substr(config.root.size()));
  if (!names) return invalid_request(native_id + ": " + names.error().message);
  const auto is_draft = [](const std::string& name) { return name.starts_with(kDraftPrefix); };
  if (std::any_of(names->begin(), names->end(), is_draft)) {
    return not_found(native_id + ": names with " + std::string(kDraftPrefix) + " are this plugin's own");
  }
  return names;
}

/// RFC 3339, UTC, with nanoseconds. Years outside of 0000..9999 come as the nearest time inside.
std::string rfc3339(std::timespec time) {
  constexpr std::time_t kFirst = -62'167'219'200;
  constexpr std::time_t kLast = 253'402'300'799;
  time.tv_sec = std::clamp(time.tv_sec, kFirst, kLast);
  std::tm parts{};
  gmtime_r(&time.tv_sec, &parts);
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%09ldZ", parts.tm_year + 1900,
                parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, time.tv_nsec);
  return text.data();
}

std::string octal_mode(std::uint32_t mode) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04o", mode);
  return text.data();
}

/// Device, inode and birth time. Empty for a file of several names (hard links): it would say that they are one; and
/// without a birth time: inodes are used again, and a new file would pass for a renamed old one.
std::string uid_of(const Status& status) {
  if (!status.birth || (status.kind != Kind::kDirectory && status.links > 1)) return "";
  return std::to_string(status.device) + ":" + std::to_string(status.inode) + ":" +
         std::to_string(status.birth->tv_sec) + "." + std::to_string(status.birth->tv_nsec);
}

Json common_properties(const std::string& native_id, const Status& status) {
  return {{"path", native_id}, {"mode", octal_mode(status.mode)}, {"uid", status.uid}, {"gid", status.gid}};
}

}  // namespace

Result<Config> parse_config(const Json& json) {
  if (!json.is_object()) return invalid_request("config: must be an object");
  Config config;
  if (!json.contains("root")) return invalid_request("config.root: is missing");
  for (const auto& [key, value] : json.items()) {
    if (key == "root") {
      auto root = parse_root(value.is_string() ? value.get<std::string>() : "");
      if (!root) return root.error();
      config.root = std::move(*root);
    } else if (key == "hash") {
      if (!value.is_boolean()) return invalid_request("config.hash: must be true or false");
      config.hash = value.get<bool>();
    } else if (key == "unreadable") {
      if (value != "problem" && value != "skip") return invalid_request("config.unreadable: must be problem or skip");
      config.unreadable = value == "skip" ? Unreadable::kSkip : Unreadable::kProblem;
    } else {
      return invalid_request("config." + key + ": unknown key");
    }
  }
  return config;
}

Error at(const std::string& native_id, Error error) {
  error.message = native_id + ": " + error.message;
  return error;
}

Error unseen(Error error) {
  if (error.code == Errc::kNotFound) error.code = Errc::kInvalidRequest;
  return error;
}

Result<View> View::open(const TargetInfo& target, std::stop_token stop) {
  auto config = parse_config(target.config);
  if (!config) return config.error();
  auto tree = Tree::open(config->root_path());
  if (!tree) return tree.error();
  return View(std::move(*config), std::move(*tree), std::move(stop));
}

Resource View::root() const {
  auto id = percent_encode(config_.root_path());
  const auto& status = tree_.root().status;
  return {id, common_properties(id, status), uid_of(status)};
}

Result<ListPage> View::list_below(Kind kind, const ListRequest& request) {
  auto page = list_directory(kind, request);
  const bool denied = !page && page.error().code == Errc::kAccessDenied;
  if (denied && config_.unreadable == Unreadable::kSkip) return ListPage{};
  return page;
}

Result<Place> View::place_of(const std::string& native_id) const {
  if (native_id.size() > kMaxNativeIdBytes) {
    return failure(Errc::kLimit,
                   "a path of " + std::to_string(native_id.size()) + " bytes, longer than a native id may be");
  }
  auto names = names_below(config_, native_id);
  if (!names) return names.error();
  if (names->empty()) return invalid_request(native_id + ": is the root of the target, which is only looked at");
  auto name = std::move(names->back());
  names->pop_back();
  auto directory = tree_.walk(*names);
  if (!directory) return at(native_id, directory.error());
  if (!tree_.holds(*directory)) return not_found(native_id + ": on another file system than the root");
  return Place{std::move(*directory), std::move(name)};
}

Result<Resource> View::read(Kind kind, const std::string& native_id) {
  if (native_id == percent_encode(config_.root_path())) {
    return kind == Kind::kDirectory ? Result<Resource>(root()) : not_found();
  }
  const auto path = percent_decode(native_id);
  if (!is_within_root(config_, path) && path.starts_with('/') && split(path)) {  // the target had another root before
    return not_found(native_id + ": is not below the target's root " + config_.root_path());
  }
  const auto place = place_of(native_id);
  if (!place) return place.error();
  auto seen = look(kind, place->parent, place->name, native_id);
  if (!seen) return seen.error();
  return std::move(seen->resource);
}

bool View::page_is_full() const {
  return id_bytes_ >= kIdBytesPerPage || hashed_bytes_ >= kHashBytesPerPage ||
         (hashed_bytes_ > 0 && std::chrono::steady_clock::now() - start_ >= kHashTimePerPage);
}

Result<ListPage> View::list_directory(Kind kind, const ListRequest& request) {
  const auto& parent = request.parent->native_id;
  auto way = names_below(config_, parent);
  if (!way) return way.error();
  const auto directory = tree_.walk(*way);
  if (!directory) return at(parent, directory.error());
  if (!tree_.holds(*directory)) return ListPage{};

  const auto limit = request.page_size == 0 ? kPageSize : std::min(request.page_size, kPageSize);
  auto found = list_names(*directory, kind, percent_decode(request.page_token), limit);
  if (!found) return at(parent, found.error());

  ListPage page;
  // Special files are of no type; the first page of files counts them.
  if (kind == Kind::kFile && request.page_token.empty()) page.skipped = found->special;
  const std::string prefix = (way->empty() ? config_.root : percent_decode(parent)) + "/";
  for (const auto& name : found->names) {
    if (stop_.stop_requested()) return failure(Errc::kCancelled, "cancelled while listing " + parent);
    const auto native_id = percent_encode(prefix + name);
    id_bytes_ += native_id.size();
    if (native_id.size() > kMaxNativeIdBytes) {
      page.problems.push_back(
          {"", failure(Errc::kLimit, "a path longer than a native id may be, ending in " + percent_encode(name))});
      continue;
    }
    auto resource = look(kind, *directory, name, native_id);
    if (resource) {
      page.items.push_back(std::move(resource->resource));
    } else if (resource.error().code == Errc::kCancelled) {
      return resource.error();
    } else if (resource.error().code != Errc::kNotFound) {  // gone since: as if it had never been there
      page.problems.push_back({native_id, resource.error()});
    }
    if (page_is_full() && name != found->names.back()) {
      page.next_page_token = percent_encode(name);
      return page;
    }
  }
  if (found->more) page.next_page_token = percent_encode(found->names.back());
  return page;
}

Result<Seen> View::look(Kind kind, const Directory& directory, const std::string& name, const std::string& native_id) {
  auto status = status_of(directory, name);
  if (!status) return status.error();
  if (status->kind != kind) return not_found(native_id + ": is of another type");
  std::string sha256;
  if (kind == Kind::kFile && config_.hash) {
    auto hashed = hash_file(directory, name, stop_);
    const bool denied = !hashed && hashed.error().code == Errc::kAccessDenied;
    if (!hashed && !(denied && config_.unreadable == Unreadable::kSkip)) return hashed.error();
    if (hashed) {
      status = hashed->status;
      sha256 = std::move(hashed->sha256);
      hashed_bytes_ += status->size;
    }
  }
  auto properties = common_properties(native_id, *status);
  if (kind == Kind::kFile) {
    properties["size"] = status->size;
    properties["mtime"] = rfc3339(status->mtime);
  }
  if (!sha256.empty()) properties["sha256"] = std::move(sha256);
  if (kind == Kind::kSymlink) {
    auto target = link_target(directory, name);
    if (!target) return target.error();
    properties["target"] = percent_encode(*target);
  }
  // What is mounted here may be elsewhere, too: a uid would say that both are one.
  return Seen{*status, Resource{native_id, properties, tree_.is_mounted(*status) ? "" : uid_of(*status)}};
}

}  // namespace muster::fs
