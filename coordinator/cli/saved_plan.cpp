#include "coordinator/cli/saved_plan.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <ostream>

#include "coordinator/cli/local_verbs.h"

namespace muster::cli {
namespace {

/// As a step's, of a stack without a name.
Json basis_of_target(const Json& target) {
  return {{"stack", ""},
          {"name", "target " + field(target, "target")},
          {"action", target.at("action")},
          {"hash", target.at("hash")}};
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
  std::multimap<std::string, Json> old;  // a name may be made as another type, and the old one deleted
  for (const Json& step : basis) old.emplace(place_of(step), step);
  std::vector<Json> changed;
  const auto take = [&](const Json& step) {
    const auto [first, last] = old.equal_range(place_of(step));
    const auto same = std::find_if(first, last, [&](const auto& each) {
      return field(each.second, "action") == field(step, "action") && field(each.second, "hash") == field(step, "hash");
    });
    same == last ? changed.push_back(step) : void(old.erase(same));
  };
  for (const Json& target : plan.value("targets", Json::array())) take(basis_of_target(target));
  for (const Json& step : plan.at("steps")) {
    if (step.contains("hash")) take(step);
  }
  std::vector<std::string> said;
  for (const auto& step : changed) {
    const auto where = place_of(step);
    const auto it = old.find(where);
    if (it == old.end()) {
      said.push_back(where + ": would need " + field(step, "action") + " now");
      continue;
    }
    if (field(it->second, "action") != field(step, "action")) {
      said.push_back(where + ": was planned as " + field(it->second, "action") + ", and would be " +
                     field(step, "action") + " now");
    } else {
      said.push_back(where +
                     ": differs in other ways than when it was planned: " + step.value("patch", Json::array()).dump());
    }
    old.erase(it);
  }
  for (const auto& [where, step] : old) {
    said.push_back(where + ": was planned as " + field(step, "action") + ", and needs nothing now");
  }
  return said;
}

}  // namespace muster::cli
