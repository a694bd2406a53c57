#include "coordinator/cli/plugin_keeper.h"

#include <algorithm>
#include <set>
#include <utility>

namespace muster::cli {
namespace {

constexpr Millis kDrainPatience{12'000};   // the SDK ends within 10 s
constexpr Millis kAcceptPatience{90'000};  // the SDK gives a plugin 60 s to initialize
constexpr Millis kLostPatience{5000};
constexpr std::size_t kMaxDraining = 2;  // versions; each for kDrainPatience at most

}  // namespace

bool PluginKeeper::runs(const Edition& edition) {
  return std::any_of(edition.seats.begin(), edition.seats.end(),
                     [](const Seat& seat) { return seat.process.has_value(); });
}

bool PluginKeeper::may_start(const Edition& edition) const {
  return edition.quarantine.empty() && (refusal_.empty() || refused_ != edition.version);
}

bool PluginKeeper::may_start(const Edition& edition, const Seat& seat) const {
  return !seat.process && seat.quarantine.empty() && may_start(edition);
}

std::string PluginKeeper::trouble(const Edition& edition) {
  if (!edition.quarantine.empty()) return edition.quarantine;
  std::size_t count = 0;
  std::string why;
  for (const Seat& seat : edition.seats) {
    if (seat.quarantine.empty()) continue;
    ++count;
    why = seat.quarantine;
  }
  if (count == 0) return {};
  return std::to_string(count) + " of " + std::to_string(edition.seats.size()) + " processes: " + why;
}

bool PluginKeeper::has_room(const Edition& edition) const {
  std::set<std::uint64_t> draining;
  for (const Leaving& one : leaving_) draining.insert(one.generation);
  return edition.generation > 0 || draining.size() < kMaxDraining;
}

void PluginKeeper::leave(const Edition& edition, Seat& seat) {
  if (const auto& process = seat.process) {
    leaving_.push_back({process->pid, edition.generation, TimePoint::max(), false, process->killed && process->told});
  }
  seat.process.reset();
}

void PluginKeeper::retire(Edition& edition) {
  for (Seat& seat : edition.seats) leave(edition, seat);
  edition.generation = 0;
}

void PluginKeeper::scale(std::size_t count) {
  if (count > count_)
    notices_.push_back("jobs wait: " + std::to_string(count) + " processes instead of " + std::to_string(count_));
  if (count < count_)
    notices_.push_back("slots stay free: " + std::to_string(count) + " processes instead of " + std::to_string(count_));
  count_ = count;
  for (auto* edition : {&serving_, &next_}) {
    if (!*edition) continue;
    auto& seats = (*edition)->seats;
    const auto shrink = [&](const auto& may_go) {
      for (auto i = seats.size(); i-- > 0 && seats.size() > count;) {
        if (!may_go(seats[i])) continue;
        leave(**edition, seats[i]);
        seats.erase(seats.begin() + static_cast<std::ptrdiff_t>(i));
      }
    };
    shrink([](const Seat& seat) { return !seat.quarantine.empty(); });  // before any that works
    shrink([](const Seat& seat) { return !seat.process || seat.process->jobs == 0; });
    if (seats.size() < count) seats.resize(count);
  }
}

void PluginKeeper::want(const std::string& version) {
  refusal_.clear();
  if (next_ && next_->version == version) return;
  if (next_) retire(*next_);
  next_.reset();
  if (serving_ && serving_->version == version) return;
  Edition fresh{version, std::vector<Seat>(count_), 0, {}};
  if (serving_ && runs(*serving_)) {
    notices_.emplace_back("a new version: it takes over when a coordinator has accepted it");
    next_ = std::move(fresh);
  } else {
    serving_ = std::move(fresh);
  }
}

void PluginKeeper::refuse(const std::string& version, const std::string& reason) {
  if (refused_ == version && refusal_ == reason) return;
  refused_ = version;
  refusal_ = reason;
  if (next_) retire(*next_);
  next_.reset();
  const bool goes_on = serving_ && runs(*serving_);
  notices_.push_back("is not started: " + reason + (goes_on ? "; what runs goes on" : ""));
}

void PluginKeeper::remove() {
  refusal_.clear();
  if (!serving_ && !next_) return;
  for (auto* edition : {&serving_, &next_}) {
    if (*edition) retire(**edition);
    edition->reset();
  }
  notices_.emplace_back(leaving_.empty() ? "its file is gone" : "its file is gone: drains");
}

void PluginKeeper::forgive() {
  for (auto* edition : {&serving_, &next_}) {
    if (!*edition || trouble(**edition).empty()) continue;
    (*edition)->quarantine.clear();
    for (Seat& seat : (*edition)->seats) {
      seat.restarts = {};
      seat.quarantine.clear();
    }
    notices_.emplace_back("is tried again");
  }
}

void PluginKeeper::take_over(TimePoint now) {
  if (!next_ || !next_->quarantine.empty()) return;
  bool all = true;
  for (const Seat& seat : next_->seats) {
    all = all && seat.process && seat.process->accepted;
    if (!seat.process || seat.process->accepted || now - seat.process->awaited < kAcceptPatience) continue;
    next_->quarantine = "no coordinator accepted it within 90 s";
    notices_.push_back("the new version is quarantined: " + next_->quarantine + "; the one before goes on");
    retire(*next_);
    return;
  }
  if (!all) return;
  notices_.emplace_back("the new version has taken over, the one before drains");
  if (serving_) retire(*serving_);
  serving_ = std::exchange(next_, std::nullopt);
}

void PluginKeeper::give_up_unaccepted(TimePoint now) {
  if (!serving_) return;
  for (Seat& seat : serving_->seats) {
    if (seat.process && !seat.process->accepted && now - seat.process->awaited >= kAcceptPatience)
      seat.process->killed = true;
  }
}

PluginKeeper::Actions PluginKeeper::decide(TimePoint now) {
  Actions actions;
  take_over(now);
  give_up_unaccepted(now);
  for (auto* edition : {&serving_, &next_}) {
    if (!*edition) continue;
    const bool room = has_room(**edition);
    if (!room && may_start(**edition) && !std::exchange(said_to_wait_, true)) {
      notices_.push_back(std::to_string(kMaxDraining) +
                         " versions before it drain still: the new one waits for the end of one");
    }
    for (std::size_t i = 0; i < (*edition)->seats.size(); ++i) {
      Seat& seat = (*edition)->seats[i];
      if (seat.process && seat.process->killed && !std::exchange(seat.process->told, true)) {
        actions.kills.push_back(seat.process->pid);
      }
      if (room && may_start(**edition, seat) && seat.restarts.next_start() <= now) {
        actions.starts.push_back({(*edition)->version, i});
      }
    }
  }
  for (Leaving& one : leaving_) {
    if (!std::exchange(one.told, true)) {
      one.kill_at = now + kDrainPatience;
      actions.drains.push_back(one.pid);
    } else if (now >= one.kill_at && !std::exchange(one.killed, true)) {
      notices_.emplace_back("does not drain: killed");
      actions.kills.push_back(one.pid);
    }
  }
  return actions;
}

TimePoint PluginKeeper::next_due() const {
  TimePoint due = TimePoint::max();
  for (const auto* edition : {&serving_, &next_}) {
    if (!*edition || !may_start(**edition)) continue;
    const bool room = has_room(**edition);
    for (const Seat& seat : (*edition)->seats) {
      if (room && may_start(**edition, seat)) due = std::min(due, seat.restarts.next_start());
      if (seat.process && !seat.process->accepted && !seat.process->killed) {
        due = std::min(due, seat.process->awaited + kAcceptPatience);
      }
    }
  }
  for (const Leaving& one : leaving_) {
    if (!one.killed) due = std::min(due, one.told ? one.kill_at : TimePoint{});
  }
  return due;
}

std::optional<PluginKeeper::Edition>* PluginKeeper::edition_of(const std::string& version) {
  for (auto* edition : {&serving_, &next_}) {
    if (*edition && (*edition)->version == version) return edition;
  }
  return nullptr;
}

void PluginKeeper::started(const Start& start, pid_t pid, TimePoint now) {
  auto* edition = edition_of(start.version);
  if (edition == nullptr) return;
  if ((*edition)->generation == 0) (*edition)->generation = ++generations_;
  (*edition)->seats.at(start.seat).process = Process{pid, now, now};
  if (!(*edition)->quarantine.empty()) retire(**edition);  // for a start of the same decision that failed
}

void PluginKeeper::not_started(const Start& start, const std::string& why, TimePoint now) {
  auto* edition = edition_of(start.version);
  if (edition != nullptr) settle(**edition, (*edition)->seats.at(start.seat), Millis{0}, why, now);
}

void PluginKeeper::postponed(const Start& start, const std::string& why, TimePoint now) {
  auto* edition = edition_of(start.version);
  if (edition == nullptr) return;
  Restarts& restarts = (*edition)->seats.at(start.seat).restarts;
  restarts.postponed(now);
  notices_.push_back(why + "; tried again in " + std::to_string(restarts.back_off().count()) + " ms");
}

void PluginKeeper::settle(Edition& edition, Seat& seat, Millis ran, const std::string& how, TimePoint now) {
  ++restarts_;
  seat.restarts.ended(ran, now);
  if (!may_start(edition)) {
    notices_.push_back(how);
    return;
  }
  if (!seat.restarts.hopeless()) {
    notices_.push_back(how + "; starts again in " + std::to_string(seat.restarts.back_off().count()) + " ms");
    return;
  }
  quarantine(edition, seat, "ended 5 times within 60 s, at last: " + how);
}

void PluginKeeper::quarantine(Edition& edition, Seat& seat, const std::string& why) {
  seat.quarantine = why;
  const bool is_next = next_ && &*next_ == &edition;
  const bool others =
      std::any_of(edition.seats.begin(), edition.seats.end(), [](const Seat& one) { return one.quarantine.empty(); });
  std::string whose, rest;
  if (is_next) {
    whose = "the new version is ";
    rest = "; the one before goes on";
  } else if (others) {
    whose = "process " + std::to_string(&seat - edition.seats.data() + 1) + " is ";
    rest = "; the others go on";
  }
  notices_.push_back(whose + "quarantined: " + why + rest + "; tried again when the file changes, or on SIGHUP");
  if (is_next || !others) edition.quarantine = why;
  if (is_next) retire(edition);
}

void PluginKeeper::ended(pid_t pid, const std::string& how, TimePoint now) {
  if (std::erase_if(leaving_, [&](const Leaving& one) { return one.pid == pid; }) > 0) {
    notices_.push_back(how + (how == "exited with status 0" ? ": drained" : ""));
    said_to_wait_ = said_to_wait_ && !leaving_.empty();
    return;
  }
  for (auto* edition : {&serving_, &next_}) {
    if (!*edition) continue;
    for (Seat& seat : (*edition)->seats) {
      if (!seat.process || seat.process->pid != pid) continue;
      const Process process = *std::exchange(seat.process, std::nullopt);
      settle(**edition, seat, std::chrono::duration_cast<Millis>(now - process.started),
             !process.killed    ? how
             : process.accepted ? "did not answer any more: killed"
                                : "no coordinator accepted it within 90 s: killed",
             now);
      return;
    }
  }
}

template <typename Use>
void PluginKeeper::each_process(Use use) {
  for (auto* edition : {&serving_, &next_}) {
    if (!*edition) continue;
    for (Seat& seat : (*edition)->seats) {
      if (seat.process) use(*seat.process);
    }
  }
}

void PluginKeeper::accepted(pid_t pid) {
  each_process([&](Process& process) {
    if (process.pid != pid) return;
    process.accepted = true;
    process.lost.reset();
    process.unknown.reset();
  });
}

void PluginKeeper::has_jobs(pid_t pid, std::size_t jobs) {
  each_process([&](Process& process) {
    if (process.pid == pid) process.jobs = jobs;
  });
}

void PluginKeeper::lost(pid_t pid, TimePoint now) {
  each_process([&](Process& process) {
    if (process.pid != pid || !process.accepted) return;
    process.unknown.reset();
    if (!process.lost) process.lost = now;
    process.killed = process.killed || now - *process.lost >= kLostPatience;
  });
}

void PluginKeeper::unknown(pid_t pid, TimePoint now) {
  each_process([&](Process& process) {
    if (process.pid != pid || !process.accepted) return;
    if (!process.unknown) process.unknown = now;
    process.killed = process.killed || now - *process.unknown >= kAcceptPatience;
  });
}

void PluginKeeper::trust(TimePoint started_before) {
  each_process([&](Process& process) {
    process.accepted = process.accepted || process.started < started_before;
    process.lost.reset();  // the next one has to hear of it first
    process.unknown.reset();
  });
}

void PluginKeeper::stalled(TimePoint now) {
  each_process([&](Process& process) {
    process.awaited = now;
    process.lost.reset();
    process.unknown.reset();
  });
  for (Leaving& one : leaving_) {
    if (one.told) one.kill_at = now + kDrainPatience;
  }
}

PluginKeeper::Status PluginKeeper::status() const {
  Status status;
  status.restarts = restarts_;
  bool accepted = false;
  for (const auto* edition : {&serving_, &next_}) {
    if (!*edition) continue;
    if (status.reason.empty()) status.reason = trouble(**edition);
    for (const Seat& seat : (*edition)->seats) {
      if (!seat.process) continue;
      accepted = accepted || seat.process->accepted;
      status.processes.push_back(seat.process->pid);
    }
  }
  if (!refusal_.empty()) status.reason = refusal_;
  const bool wanted = serving_ || next_;
  status.state = !status.reason.empty()      ? State::kQuarantined
                 : accepted                  ? State::kRunning
                 : !status.processes.empty() ? State::kStarting
                 : wanted                    ? State::kWaiting
                                             : State::kDraining;
  return status;
}

bool PluginKeeper::runs(pid_t pid) const {
  const auto pids = status().processes;
  return std::find(pids.begin(), pids.end(), pid) != pids.end();
}

bool PluginKeeper::awaits() const {
  for (const auto* edition : {&serving_, &next_}) {
    if (!*edition) continue;
    for (const Seat& seat : (*edition)->seats) {
      if (seat.process && (!seat.process->accepted || seat.process->lost)) return true;
    }
  }
  return false;
}

std::vector<std::string> PluginKeeper::take_notices() {
  return std::exchange(notices_, {});
}

}  // namespace muster::cli
