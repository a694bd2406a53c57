#include "fs.h"

#include <array>
#include <fstream>
#include <memory>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schemas.h"
#include "view.h"
#include "writes.h"

namespace muster::fs {
namespace {

Result<ListPage> list(Kind kind, const ListRequest& request, JobContext& context) {
  auto view = View::open(request.target, context.stop_token());
  // Below a directory NOT_FOUND says that this one is gone, and has nothing in it.
  if (!view) return request.parent ? unseen(view.error()) : view.error();
  if (request.parent) return view->list_below(kind, request);
  if (kind != Kind::kDirectory) return invalid_request(request.type + " is listed below a directory");
  return ListPage{{view->root()}, "", {}, 0};
}

std::vector<Result<Resource>> read_many(Kind kind, const ReadManyRequest& request, JobContext& context) {
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

/// What stands where nothing is mounted now is another tree than the one that was, with none of its content.
bool is_mounted(const std::string& path) {
  struct statx status = {};
  return statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, 0, &status) == 0 &&
         (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

Result<Inspection> inspect(const InspectRequest& request, JobContext& context) {
  const auto config = parse_config(request.target.config);
  if (!config) return config.error();
  if (const auto view = View::open(request.target, context.stop_token()); !view) return view.error();
  const auto root = config->root_path();
  Inspection inspection;
  inspection.system = machine() + ":" + root + (is_mounted(root) ? " (mounted)" : "");
  return inspection;
}

void add_type(Plugin& plugin, Kind kind, const std::shared_ptr<Sweeper>& sweeper, TypeInfo info) {
  info.parent = "FS::Directory";
  info.list_gives = ListGives::kProperties;
  info.page_size = kPageSize;
  plugin.type(std::move(info))
      .list([kind](const ListRequest& request, JobContext& context) { return list(kind, request, context); })
      .read_many(
          [kind](const ReadManyRequest& request, JobContext& context) { return read_many(kind, request, context); })
      .create([kind, sweeper](const CreateRequest& request, JobContext& context) {
        return create(kind, *sweeper, request, context);
      })
      .update([kind, sweeper](const UpdateRequest& request, JobContext& context) {
        return update(kind, *sweeper, request, context);
      })
      .remove([kind, sweeper](const DeleteRequest& request, JobContext& context) {
        return fs::remove(kind, *sweeper, request, context);
      });
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
  const auto sweeper = std::make_shared<Sweeper>();
  TypeInfo directory;
  directory.name = "FS::Directory";
  directory.description = "A directory; the root itself is one";
  directory.schema = kDirectorySchema;
  directory.examples = {R"({"path":"/srv/www","mode":"0755","uid":0,"gid":0})"};
  add_type(plugin, Kind::kDirectory, sweeper, std::move(directory));

  TypeInfo file;
  file.name = "FS::File";
  file.description = "A regular file";
  file.schema = kFileSchema;
  file.examples = {R"({"path":"/srv/www/robots.txt","mode":"0644","content":"User-agent: *\n"})"};
  add_type(plugin, Kind::kFile, sweeper, std::move(file));

  TypeInfo symlink;
  symlink.name = "FS::Symlink";
  symlink.description = "A symbolic link; it is never followed";
  symlink.schema = kSymlinkSchema;
  symlink.examples = {R"({"path":"/srv/current","target":"releases/42"})"};
  add_type(plugin, Kind::kSymlink, sweeper, std::move(symlink));
  plugin.inspect(inspect);
}

}  // namespace muster::fs
