#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "muster/worker.h"
#include "tree.h"

/// A target: its configuration, and how what stands below its root looks from outside.
namespace muster::fs {

inline constexpr std::uint32_t kPageSize = 4096;

enum class Unreadable : std::uint8_t { kProblem, kSkip };

struct Config {
  std::string root;  // no slash at its end, so "" is the root of all
  bool hash = false;
  Unreadable unreadable = Unreadable::kProblem;

  [[nodiscard]] std::string root_path() const { return root.empty() ? "/" : root; }
};

/// errors   kInvalidRequest, naming the key
Result<Config> parse_config(const Json& json);

/// One object as it was found.
struct Seen {
  Status status;
  Resource resource;
};

/// Where an object stands, or could.
struct Place {
  Directory parent;
  std::string name;
};

/// One request's view of a target.
class View {
 public:
  static Result<View> open(const TargetInfo& target, std::stop_token stop);

  [[nodiscard]] Resource root() const;
  Result<ListPage> list_below(Kind kind, const ListRequest& request);
  Result<Resource> read(Kind kind, const std::string& native_id);

  /// errors   kInvalidRequest: outside of the root, or the root itself; kLimit: longer than a native id may be;
  ///          kNotFound: its directory is not there, or behind a link or mount point
  Result<Place> place_of(const std::string& native_id) const;
  /// errors   kNotFound: nothing there, or of another kind
  Result<Seen> look(Kind kind, const Directory& directory, const std::string& name, const std::string& native_id);

 private:
  View(Config config, Tree tree, std::stop_token stop)
      : config_(std::move(config)), tree_(std::move(tree)), stop_(std::move(stop)) {}

  Result<ListPage> list_directory(Kind kind, const ListRequest& request);
  [[nodiscard]] bool page_is_full() const;

  Config config_;
  Tree tree_;
  std::stop_token stop_;
  std::uint64_t id_bytes_ = 0;
  std::uint64_t hashed_bytes_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Names the whole path in an error that knows of one component only.
Error at(const std::string& native_id, Error error);
/// Without its root a target says nothing of what stood below: that is no NOT_FOUND of the things asked for.
Error unseen(Error error);

}  // namespace muster::fs
