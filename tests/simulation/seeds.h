#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <spdlog/fwd.h>

namespace muster::sim {

using Names = std::set<std::string>;  // of parts of a simulation
using Log = std::shared_ptr<spdlog::logger>;

/// Both ends included.
struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t last = 1;
};

/// `7` or `1..100`; nothing when it is neither.
std::optional<Seeds> parse_seeds(const std::string& text);

Log quiet_log();
/// All that coordinator and workers say, on stderr.
Log verbose_log();

/// Regressions or mutations whose seeds were found before these parts came.
template <typename Shown>
std::vector<Shown> as_found(std::vector<Shown> all) {
  for (auto& one : all) {
    one.without.insert(
        {"forgets", "gaps", "lag", "loose", "narrowings", "no-uids", "revivals", "strict", "swaps", "unread"});
  }
  return all;
}
/// Those whose seeds were found before reads could wait at workers.
template <typename Shown>
std::vector<Shown> without_waits(std::vector<Shown> all) {
  for (auto& one : all) one.without.insert("waits");
  return all;
}

/// A bug that a seed has shown, and that seed.
struct Regression {
  const char* bug;
  std::uint64_t seed;
  Names without;
};
const std::vector<Regression>& regressions();

/// Simulates one fleet. Returns what an invariant has to say, nothing when all of them hold.
/// `parts`   gets the names of what could be left out; may be null
std::optional<std::string> run_seed(std::uint64_t seed, const Names& without, const Log& log,
                                    std::vector<std::string>* parts = nullptr);

/// Runs a seed, without a log. A failure is told in one line with the call that replays it: of the smallest failure
/// that is left when every part that it does not need is left out, if `shrink` wants that.
enum class Shrink : std::uint8_t { kNo, kYes };
std::optional<std::string> judge_seed(std::uint64_t seed, const Names& without, Shrink shrink);
std::string failure_line(std::uint64_t seed, const Names& without, const std::string& fault);

}  // namespace muster::sim
