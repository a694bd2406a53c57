#include "coordinator/cli/saved_plan.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ostream>

#include "coordinator/cli/local_verbs.h"
#include "coordinator/plan_basis.h"

namespace muster::cli {
namespace {

/// As a step's, of a stack without a name.
Json basis_of_target(const Json& target) {
  return {{"stack", ""},
          {"name", "target " + field(target, "target")},
          {"action", target.at("action")},
          {"hash", target.at("hash")}};
}

PlanBasis basis_of(const Json& step) {
  return {place_of(step), field(step, "action"), field(step, "hash"),
          step.contains("patch") ? step.at("patch").dump() : std::string()};
}

}  // namespace

std::string place_of(const Json& step) {
  const auto stack = field(step, "stack");
  return (stack.empty() ? "" : stack + "/") + field(step, "name");
}

std::optional<Wanted> read_plan(Screen& screen, const std::string& file) {
  const auto text = read_file(file);
  const auto refuse = [&](const std::string& why) {
    screen.err << "muster: " << escape(file) << ": " << escape(why) << std::endl;
    return std::nullopt;
  };
  if (!text) return refuse(text.error().message);
  try {
    const auto saved = nlohmann::json::parse(*text);
    if (saved.at("muster_plan") != 1) return refuse("a plan that another version of `muster apply --plan-out` saved");
    Wanted wanted;
    for (const auto& stack : saved.at("stacks")) {
      wanted.names.insert(stack.at("stack"));
      wanted.stacks.push_back(stack.dump());
    }
    for (const auto& target : saved.at("targets")) wanted.targets.push_back(target);
    wanted.basis = Json::parse(saved.at("basis").dump());
    if (!wanted.basis.is_array()) return refuse("not a plan that `muster apply --plan-out` saved");
    wanted.mode = saved.at("mode");
    wanted.only = saved.at("only").get<std::vector<std::string>>();
    wanted.exclude = saved.at("exclude").get<std::vector<std::string>>();
    return wanted;
  } catch (const nlohmann::json::exception&) {
    return refuse("not a plan that `muster apply --plan-out` saved");
  }
}

bool save_plan(Screen& screen, const std::string& file, const Wanted& wanted, const Json& plan) {
  nlohmann::json saved{{"muster_plan", 1},
                       {"stacks", nlohmann::json::array()},
                       {"targets", wanted.targets},
                       {"mode", wanted.mode},
                       {"only", wanted.only},
                       {"exclude", wanted.exclude},
                       {"basis", nlohmann::json::array()}};
  for (const auto& stack : wanted.stacks) saved["stacks"].push_back(nlohmann::json::parse(stack));
  for (const Json& step : plan.at("steps")) {
    if (!step.contains("hash")) continue;
    saved["basis"].push_back({{"stack", step.at("stack")},
                              {"name", step.at("name")},
                              {"action", step.at("action")},
                              {"hash", step.at("hash")}});
  }
  for (const Json& target : plan.value("targets", Json::array())) {
    saved["basis"].push_back(nlohmann::json(basis_of_target(target)));
  }
  const auto text = saved.dump() + "\n";
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool written = descriptor >= 0 && fchmod(descriptor, 0600) == 0;
  for (std::size_t at = 0; written && at < text.size();) {
    const auto count = write(descriptor, text.data() + at, text.size() - at);
    written = count > 0;
    at += written ? static_cast<std::size_t>(count) : 0;
  }
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  if (!written) screen.err << "muster: " << escape(file) << " cannot be written: " << std::strerror(error) << std::endl;
  return written;
}

std::vector<std::string> moved(const Json& basis, const Json& plan) {
  std::vector<PlanBasis> before, now;
  for (const Json& step : basis) before.push_back(basis_of(step));
  for (const Json& target : plan.value("targets", Json::array())) now.push_back(basis_of(basis_of_target(target)));
  for (const Json& step : plan.at("steps")) {
    if (step.contains("hash")) now.push_back(basis_of(step));
  }
  return muster::moved(before, now);
}

}  // namespace muster::cli
