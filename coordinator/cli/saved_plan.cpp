#include "coordinator/cli/saved_plan.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ostream>

#include "coordinator/cli/local_verbs.h"
#include "coordinator/cli/replace_file.h"
#include "coordinator/plan_basis.h"

namespace muster::cli {

namespace fs = std::filesystem;

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

/// Whether it is something else of the user's: the declarations that the plan was made of, most likely.
bool is_no_plan(const std::string& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return false;
  const auto text = read_file(file);
  if (!text || text->empty()) return false;
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  return !json.is_object() || !json.contains("muster_plan");
}

/// To what is no file, or leads to one.
Result<void> write_through(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  if (file << text << std::flush) return {};
  return Error{Errc::kInternalFailure, path + ": " + std::strerror(errno)};
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
  if (is_no_plan(file)) {
    screen.err << "muster: " << escape(file) << " is no saved plan, and stays as it is: name another file" << std::endl;
    return false;
  }
  const auto text = saved.dump() + "\n";
  std::error_code error;
  const bool as_it_is = fs::is_symlink(file, error) || (fs::exists(file, error) && !fs::is_regular_file(file, error));
  const auto written = as_it_is ? write_through(file, text) : replace_file(file, text, kPrivate);
  if (!written) screen.err << "muster: " << escape(written.error().message) << std::endl;
  return written.has_value();
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
