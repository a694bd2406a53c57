#include "fs.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string_view>

#include <unistd.h>

#include "schemas.h"
#include "tree.h"

namespace muster::fs {
namespace {

constexpr std::uint32_t kPageSize = 4096;
constexpr std::uint64_t kIdBytesPerPage = 1 << 20;
// A page that hashes ends after so much, so that neither huge files nor a slow disk make one job long.
constexpr std::uint64_t kHashBytesPerPage = 256ULL << 20;
constexpr std::chrono::seconds kHashTimePerPage{2};

enum class Unreadable : std::uint8_t { kProblem, kSkip };

struct Config {
  std::string root;  // no slash at its end, so "" is the root of all
  bool hash = false;
  Unreadable unreadable = Unreadable::kProblem;

  [[nodiscard]] std::string root_path() const { return root.empty() ? "/" : root; }
};

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

/// The names that lead from the root to a native id; none for the root itself.
Result<std::vector<std::string>> names_below(const Config& config, const std::string& native_id) {
  const auto path = percent_decode(native_id);
  if (percent_encode(path) != native_id) return invalid_request(native_id + ": is not a path in its escaped form");
  if (path == config.root_path()) return std::vector<std::string>{};
  const std::string_view view = path;
  if (view.substr(0, config.root.size()) != config.root || view.substr(config.root.size(), 1) != "/") {
    return invalid_request(native_id + ": is not below the target's root " + config.root_path());
  }
  auto names = split(view.substr(config.root.size()));
  if (!names) return invalid_request(native_id + ": " + names.error().message);
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

/// Names the whole path in an error that knows of one component only.
Error at(const std::string& native_id, Error error) {
  error.message = native_id + ": " + error.message;
  return error;
}

Json common_properties(const std::string& native_id, const Status& status) {
  return {{"path", native_id}, {"mode", octal_mode(status.mode)}, {"uid", status.uid}, {"gid", status.gid}};
}

/// One request's view of a target.
class View {
 public:
  static Result<View> open(const TargetInfo& target, std::stop_token stop) {
    auto config = parse_config(target.config);
    if (!config) return config.error();
    auto tree = Tree::open(config->root_path());
    if (!tree) return tree.error();
    return View(std::move(*config), std::move(*tree), std::move(stop));
  }

  [[nodiscard]] Resource root() const {
    auto id = percent_encode(config_.root_path());
    const auto& status = tree_.root().status;
    return {id, common_properties(id, status), uid_of(status)};
  }

  Result<ListPage> list_below(Kind kind, const ListRequest& request) {
    auto page = list_directory(kind, request);
    const bool denied = !page && page.error().code == Errc::kAccessDenied;
    if (denied && config_.unreadable == Unreadable::kSkip) return ListPage{};
    return page;
  }

  Result<Resource> read(Kind kind, const std::string& native_id) {
    auto names = names_below(config_, native_id);
    if (!names) return names.error();
    if (names->empty()) return kind == Kind::kDirectory ? Result<Resource>(root()) : not_found();
    const auto name = names->back();
    names->pop_back();
    auto directory = tree_.walk(*names);
    if (!directory) return at(native_id, directory.error());
    if (!tree_.holds(*directory)) return not_found(native_id + ": on another file system than the root");
    return look(kind, *directory, name, native_id);
  }

 private:
  View(Config config, Tree tree, std::stop_token stop)
      : config_(std::move(config)), tree_(std::move(tree)), stop_(std::move(stop)) {}

  Result<ListPage> list_directory(Kind kind, const ListRequest& request);
  Result<Resource> look(Kind kind, const Directory& directory, const std::string& name, const std::string& native_id);

  [[nodiscard]] bool page_is_full() const {
    return id_bytes_ >= kIdBytesPerPage || hashed_bytes_ >= kHashBytesPerPage ||
           (hashed_bytes_ > 0 && std::chrono::steady_clock::now() - start_ >= kHashTimePerPage);
  }

  Config config_;
  Tree tree_;
  std::stop_token stop_;
  std::uint64_t id_bytes_ = 0;
  std::uint64_t hashed_bytes_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

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
      page.items.push_back(std::move(*resource));
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

Result<Resource> View::look(Kind kind, const Directory& directory, const std::string& name,
                            const std::string& native_id) {
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
  return Resource{native_id, properties, uid_of(*status)};
}

Result<ListPage> list(Kind kind, const ListRequest& request, JobContext& context) {
  auto view = View::open(request.target, context.stop_token());
  if (!view) return view.error();
  if (request.parent) return view->list_below(kind, request);
  if (kind != Kind::kDirectory) return invalid_request(request.type + " is listed below a directory");
  return ListPage{{view->root()}, "", {}, 0};
}

/// Without its root a target says nothing of what stood below: that is no NOT_FOUND of the things asked for.
Error unseen(Error error) {
  if (error.code == Errc::kNotFound) error.code = Errc::kInvalidRequest;
  return error;
}

std::vector<Result<Resource>> read(Kind kind, const ReadManyRequest& request, JobContext& context) {
  std::vector<Result<Resource>> answers;
  answers.reserve(request.native_ids.size());
  auto view = View::open(request.target, context.stop_token());
  for (const auto& id : request.native_ids) {
    if (!view) {
      answers.emplace_back(unseen(view.error()));
    } else if (context.stop_token().stop_requested()) {
      answers.emplace_back(failure(Errc::kCancelled, "cancelled before " + id));
    } else {
      answers.push_back(view->read(kind, id));
    }
  }
  return answers;
}

/// The machine's own id, or its name where it has none.
std::string machine() {
  std::string id;
  std::ifstream("/etc/machine-id") >> id;
  if (!id.empty() && id != "uninitialized") return id;
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

Result<Inspection> inspect(const InspectRequest& request, JobContext&) {
  const auto config = parse_config(request.target.config);
  if (!config) return config.error();
  Inspection inspection;
  inspection.system = machine() + ":" + config->root_path();
  return inspection;
}

void add_type(Plugin& plugin, Kind kind, TypeInfo info) {
  info.parent = "FS::Directory";
  info.list_gives = ListGives::kProperties;
  info.page_size = kPageSize;
  plugin.type(std::move(info))
      .list([kind](const ListRequest& request, JobContext& context) { return list(kind, request, context); })
      .read_many([kind](const ReadManyRequest& request, JobContext& context) { return read(kind, request, context); });
}

}  // namespace

PluginInfo plugin_info() {
  PluginInfo info;
  info.name = "fs";
  info.ns = "FS";
  info.version = "0.1.0";
  info.description = "Directories, files and symbolic links of a machine, below one root";
  info.config_schema = kConfigSchema;
  return info;
}

void add_types(Plugin& plugin) {
  TypeInfo directory;
  directory.name = "FS::Directory";
  directory.description = "A directory; the root itself is one";
  directory.schema = kDirectorySchema;
  directory.examples = {R"({"path":"/srv/www","mode":"0755","uid":0,"gid":0})"};
  add_type(plugin, Kind::kDirectory, std::move(directory));

  TypeInfo file;
  file.name = "FS::File";
  file.description = "A regular file";
  file.schema = kFileSchema;
  file.examples = {R"({"path":"/srv/www/robots.txt","mode":"0644","content":"User-agent: *\n"})"};
  add_type(plugin, Kind::kFile, std::move(file));

  TypeInfo symlink;
  symlink.name = "FS::Symlink";
  symlink.description = "A symbolic link; it is never followed";
  symlink.schema = kSymlinkSchema;
  symlink.examples = {R"({"path":"/srv/current","target":"releases/42"})"};
  add_type(plugin, Kind::kSymlink, std::move(symlink));
  plugin.inspect(inspect);
}

}  // namespace muster::fs
