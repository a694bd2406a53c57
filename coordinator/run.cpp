#include "coordinator/run.h"

#include <algorithm>

#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "coordinator/canonical.h"
#include "coordinator/must.h"
#include "coordinator/run_state.h"
#include "schema/utf8.h"

namespace muster {
namespace {

constexpr std::size_t kMaxProblems = 1000;  // kept in a report; the rest is counted
constexpr std::size_t kMaxProblemBytes = 256 * 1024;
constexpr std::size_t kMaxProblemMessage = 24 * 1024;  // more than an id, and what a failure may say
constexpr std::size_t kReadBacklog = 20'000;           // ids waiting to be read before listing pauses
constexpr std::uint32_t kDefaultPageSize = 1000;

/// Whether what the last pages brought has been dealt with.
bool has_room_for_pages(const Scan& scan) {
  return scan.to_read.size() < kReadBacklog && !scan.deferred.full();
}

}  // namespace

Run::Run(RunServices services, RunRow row, RunScope scope, std::uint64_t owner)
    : s_(services), row_(std::move(row)), scope_(std::move(scope)), owner_(owner) {}

Run::~Run() = default;

void Run::start(std::vector<TargetRow> targets, TimePoint now) {
  started_wall_ = s_.clock.wall();
  begun_at_ = s_.writes.position();
  deadline_ = now + s_.config.limits.run_deadline;
  row_.state = "running";
  row_.started_at = started_wall_;
  must(s_.store.put_run(row_));
  s_.events.emit({}, "run.started", row_.id.value,
                 JsonObject().text("run", row_.id.value).text("trigger", row_.trigger).raw("scope", row_.scope).take());
  for (auto& target : targets) {
    auto& run = *targets_.emplace_back(std::make_unique<TargetRun>());
    run.target = std::move(target);
    run.lane = {run.target.ns, run.target.pool};
    if (auto wanted = scope_.of(run.target)) {
      run.wanted = std::move(wanted->types);
      run.rereads = wanted->look == Look::kReread;
      run.stacks = std::move(wanted->stacks);
    }
  }
}

Priority Run::priority_of(const TargetRun& target) {
  return target.rereads ? Priority::kDrift : Priority::kDiscovery;
}

bool Run::has_room(const TargetRun& target) {
  return s_.dispatcher.has_room(target.lane, priority_of(target), target.target.id);
}

JobSpec Run::job(const TargetRun& target, const Scan& scan, JobOperation operation) const {
  return {target.lane,
          {target.target.id, target.target.name, target.target.config},
          scan.type->name,
          target.manifest_hash,
          std::move(operation),
          priority_of(target),
          s_.config.limits.job_deadline,
          owner_};
}

JobId Run::submit(JobSpec spec, Pending pending, TimePoint now) {
  spec.patience = s_.config.limits.run_deadline;
  auto id = s_.dispatcher.submit(std::move(spec), now, s_.clock.wall());
  pending.position = s_.writes.position();
  pending_.emplace(id, std::move(pending));
  return id;
}

bool Run::look_ahead(const JobOutcome& outcome, TimePoint now) {
  const auto pending = pending_.find(outcome.job);
  if (pending == pending_.end() || finished_ || pending->second.target->outdated) return false;
  auto* page = std::get_if<Pending::Page>(&pending->second.what);
  const auto* listed = std::get_if<ListResult>(&outcome.result);
  if (page == nullptr || listed == nullptr || listed->next_page_token.empty()) return false;
  auto& target = *pending->second.target;
  auto& scan = *pending->second.scan;
  const auto& listing = page->listing;
  if (!has_room_for_pages(scan) || overflows(scan) || !has_room(target) || listing->barren_pages >= kMaxBarrenPages ||
      !listing->tokens.insert(hash128(listed->next_page_token).low).second) {
    return false;  // take_page() says what is wrong, if anything is
  }
  page->continued = true;
  return submit_page(target, scan, listing, listed->next_page_token, now);
}

void Run::take(JobOutcome outcome) {
  auto node = pending_.extract(outcome.job);
  if (node.empty() || finished_) return;
  auto& pending = node.mapped();
  auto& target = *pending.target;
  if (target.outdated) return;
  taking_ = outcome.job;
  position_ = pending.position;
  if (const auto* failed = std::get_if<Error>(&outcome.result); failed != nullptr && failed->code == Errc::kNoWorker) {
    target.deserted = true;
    if (!s_.registry.serves(target.lane, target.manifest_hash)) give_up_rest(target);
  }
  if (std::holds_alternative<Pending::Inspection>(pending.what)) {
    take_inspection(target, std::move(outcome.result));
    taking_ = {};
    return;
  }
  auto& scan = *pending.scan;
  if (auto* page = std::get_if<Pending::Page>(&pending.what)) {
    --scan.lists;
    take_page(target, scan, page->listing, page->continued, std::move(outcome.result));
  } else if (auto* reads = std::get_if<Pending::Reads>(&pending.what)) {
    --scan.reads;
    take_reads(target, scan, std::move(reads->asked), std::move(outcome.result));
  } else if (auto* old_ids = std::get_if<Pending::OldIds>(&pending.what)) {
    --scan.confirms;
    take_old_ids(target, scan, old_ids->asked, old_ids->ids, std::move(outcome.result));
  } else if (auto* confirmations = std::get_if<Pending::Confirmations>(&pending.what)) {
    --scan.confirms;
    take_confirmations(target, scan, confirmations->asked, confirmations->ids, std::move(outcome.result));
  }
  taking_ = {};
}

void Run::advance(TimePoint now, const IsTaken& is_taken) {
  if (finished_) return;
  begin_targets(now, is_taken);
  for (auto& target : targets_) {
    if (target->phase == TargetRun::Phase::kScanning) advance_target(*target, now);
  }
  const auto done = [](const auto& target) { return target->phase == TargetRun::Phase::kDone; };
  if (std::ranges::all_of(targets_, done)) finish();
}

/// Who could look has gone, and what waited for him did so in vain: the rest would wait as long, a few at a time.
void Run::give_up_rest(TargetRun& target) {
  const bool others = s_.registry.serves(target.lane, {});
  if (others) list_again(target);
  if (target.phase != TargetRun::Phase::kScanning) return;
  bool left = false;
  const auto fail = [&](Scan& scan, bool any) {
    left = left || any;
    scan.listing_failed = scan.listing_failed || any;
  };
  for (auto& scan : target.scans) {
    const bool first = !scan->begun && (target.rereads || scan->parent == nullptr || scan->parent == scan.get());
    fail(*scan, first);
    scan->begun = scan->begun || first;
    fail(*scan, !std::exchange(scan->next_pages, {}).empty());
    fail(*scan, !std::exchange(scan->to_read, {}).empty());
    bool parents = !std::exchange(scan->parents, {}).empty();
    parents = !std::exchange(scan->late_parents, {}).empty() || parents;
    for (auto* child : scan->children) fail(*child, parents);
    if (target.rereads) {
      fail(*scan, scan->next_known < scan->index.entries().size());
      scan->next_known = scan->index.entries().size();
    }
  }
  if (!left || std::exchange(target.given_up, true)) return;
  problem(target, {}, errc_name(Errc::kNoWorker),
          "no worker serves " + target.manifest->plugin + " " + target.manifest->version +
              ", which this run began with, any more: what was left to be looked at is given up" +
              (others ? ", and is for the run that follows" : ": discover again"));
}

void Run::advance_target(TargetRun& target, TimePoint now) {
  bool listed = true;
  for (auto& scan : target.scans) {
    const auto more = [&] { return target.rereads ? reread_more(target, *scan, now) : list_more(target, *scan, now); };
    do {
      while (has_room(target) && more()) {
      }
    } while (scan->received() && replace_taken(target, *scan));  // which may have something below it
    listed = listed && scan->listed() && (!target.rereads || scan->next_known == scan->index.entries().size());
  }
  // An id may have moved below another parent: nothing is judged before everything is listed.
  if (!listed) return;
  leave_late(target);
  bool done = true;
  for (auto& scan : target.scans) {
    if (target.rereads && scan->phase != Scan::Phase::kDone) finish_scan(target, *scan);
    settle(target, *scan);
    while (has_room(target) && confirm_more(target, *scan, now)) {
    }
    settle(target, *scan);
    done = done && scan->phase == Scan::Phase::kDone;
  }
  if (done) finish_target(target);
}

void Run::begin_scan(const TargetRun& target, Scan& scan) {
  scan.begun = true;
  scan.index.load(s_.store, scan.row.id);
  if (!scan.same_filters) {  // until this run has listed everything, the rows are of no known version
    scan.row.filters.clear();
    must(s_.store.put_scan(scan.row));
    if (scan.reads_items) must(s_.store.clear_filtered(scan.row.id));
  } else if (scan.reads_items) {
    if (!target.rereads) ++scan.row.runs;
    must(s_.store.load_filtered(
        scan.row.id, [&](const Hash128& id, std::uint64_t listed) { scan.filtered.emplace(id, FilteredId{listed}); }));
  }
}

bool Run::reread_more(TargetRun& target, Scan& scan, TimePoint now) {
  if (!scan.begun) begin_scan(target, scan);
  const auto& known = scan.index.entries();
  const std::size_t batch = ids_read_together(*scan.type);
  for (; scan.next_known < known.size() && scan.to_read.size() < batch; ++scan.next_known) {
    const auto& entry = known[scan.next_known];
    if (target.left.contains(entry.row) || (target.only && !target.only->contains(entry.row))) continue;
    if (const auto record = must(s_.store.one(entry.row)); record && is_listed(record->state)) {
      scan.to_read.push_back({.native_id = std::string(record->native_id), .parent = entry.parent});
    }
  }
  return submit_reads(target, scan, now);
}

ParentRef Run::parent_ref(const Scan& scan, RowId row) {
  const auto record = must(s_.store.one(row)).value();
  return {row, std::string(record.native_id), scan.wants_properties ? JsonText(record.properties) : JsonText{}};
}

bool Run::list_more(TargetRun& target, Scan& scan, TimePoint now) {
  if (!scan.begun && (scan.parent == nullptr || scan.parent == &scan)) {
    begin_scan(target, scan);
    return submit_page(target, scan, std::make_shared<Listing>(), {}, now);
  }
  if (submit_reads(target, scan, now) || ask_old_ids(target, scan, now)) return true;
  if (!has_room_for_pages(scan)) return false;
  if (!scan.next_pages.empty()) {
    auto [listing, token] = std::move(scan.next_pages.front());
    scan.next_pages.pop_front();
    return submit_page(target, scan, std::move(listing), std::move(token), now);
  }
  const bool late = scan.parents.empty();
  auto& parents = late ? scan.late_parents : scan.parents;
  if (parents.empty()) return false;
  // The newest first: a tree is walked in depth, so that the queue stays short.
  const auto row = parents.back();
  parents.pop_back();
  if (target.left.contains(row)) return true;
  const auto parent = parent_ref(scan, row);
  for (auto* child : scan.children) {
    if (late && child == &scan) continue;
    if (!child->begun) begin_scan(target, *child);
    auto listing = std::make_shared<Listing>();
    listing->parent = parent;
    submit_page(target, *child, std::move(listing), {}, now);
  }
  return true;
}

bool Run::submit_reads(TargetRun& target, Scan& scan, TimePoint now) {
  if (scan.to_read.empty()) return false;
  const std::size_t batch = ids_read_together(*scan.type);
  const bool more_to_come = scan.lists > 0 || !scan.next_pages.empty() || !scan.parents.empty();
  if (scan.to_read.size() < batch && more_to_come) return false;
  Pending::Reads reads;
  ReadJob operation;
  while (!scan.to_read.empty() && reads.asked.size() < batch) {
    operation.native_ids.push_back(scan.to_read.front().native_id);
    reads.asked.push_back(std::move(scan.to_read.front()));
    scan.to_read.pop_front();
  }
  ++scan.reads;
  submit(job(target, scan, std::move(operation)), {&target, &scan, std::move(reads)}, now);
  return true;
}

bool Run::submit_page(TargetRun& target, Scan& scan, std::shared_ptr<Listing> listing, std::string token,
                      TimePoint now) {
  ListJob operation;
  operation.page_token = std::move(token);
  operation.page_size = scan.type->page_size == 0 ? kDefaultPageSize : scan.type->page_size;
  if (listing->parent.row != 0) {
    auto parameters = nlohmann::json::object();
    if (!scan.type->parent_parameters.empty()) {
      const auto properties = nlohmann::json::parse(listing->parent.properties, nullptr, false);
      for (const auto& parameter : scan.type->parent_parameters) {
        if (properties.contains(parameter.property)) parameters[parameter.name] = properties[parameter.property];
      }
    }
    operation.parent = Parent{scan.type->parent, listing->parent.native_id, parameters.dump()};
  }
  ++scan.lists;
  submit(job(target, scan, std::move(operation)), {&target, &scan, Pending::Page{std::move(listing)}}, now);
  return true;
}

void Run::problem(const TargetRun& target, std::string_view type, std::string_view code, std::string message) {
  if (message.size() > kMaxProblemMessage) message = std::string(utf8_prefix(message, kMaxProblemMessage)) + "...";
  if (problems_.size() >= kMaxProblems || problem_bytes_ >= kMaxProblemBytes) {
    ++more_problems_;
    return;
  }
  s_.log.warn("run={} target={} type={} code={} {}", row_.id.value, target.target.name, type, code, message);
  JsonText as_json;
  append_json_string(as_json, message);
  problem_bytes_ += as_json.size();
  auto& added = problems_.emplace_back(
      RunProblem{target.target.name, std::string(type), std::string(code), std::move(message), taking_.value, {}});
  if (!taking_.empty() && target.manifest) added.plugin = target.manifest->plugin + " " + target.manifest->version;
}

void Run::fail_scan(TargetRun& target, Scan& scan, const Error& error, const std::string& doing) {
  ++scan.counts.errors;
  scan.listing_failed = true;
  problem(target, scan.type->name, errc_name(error.code), doing + ": " + error.message);
}

bool Run::looks_at(const TargetId& id) const {
  return std::ranges::any_of(targets_, [&](const auto& target) {
    return target->phase != TargetRun::Phase::kDone && target->target.id == id;
  });
}

std::size_t Run::open_targets() const {
  const auto open = [](const auto& target) { return target->phase != TargetRun::Phase::kDone; };
  return static_cast<std::size_t>(std::ranges::count_if(targets_, open));
}

std::string Run::waiting() const {
  using enum TargetRun::Phase;
  const auto open = [](const auto& target) { return target->phase != kWaiting && target->phase != kDone; };
  if (waits_for_others_ && std::ranges::none_of(targets_, open)) return "waiting for the run before it";
  for (const auto& target : targets_) {
    if (target->phase == kDone || s_.registry.serves(target->lane, target->manifest_hash)) continue;
    const bool others = target->manifest && s_.registry.serves(target->lane, {});
    return "waiting for a worker of " + target->lane.ns + "/" + target->lane.pool +
           (others ? " that serves " + target->manifest->plugin + " " + target->manifest->version : "");
  }
  return {};
}

JsonText Run::progress() const {
  ScanCounts sum;
  std::uint64_t scans = 0, ended = 0;
  for (const auto& target : targets_) {
    for (const auto& scan : target->scans) {
      const auto& c = scan->counts;
      ++scans;
      ended += scan->phase == Scan::Phase::kDone ? 1 : 0;
      sum.listed += c.listed;
      sum.read += c.read;
      sum.filtered += c.filtered;
      sum.fresh += c.fresh;
      sum.changed += c.changed;
      sum.renamed += c.renamed;
      sum.unchanged += c.unchanged;
      sum.missing += c.missing;
      sum.errors += c.errors;
    }
  }
  return JsonObject()
      .text("run", row_.id.value)
      .text("state", row_.state)
      .number("scans", scans)
      .number("scans_ended", ended)
      .number("listed", sum.listed)
      .number("read", sum.read)
      .number("filtered", sum.filtered)
      .number("new", sum.fresh)
      .number("changed", sum.changed)
      .number("renamed", sum.renamed)
      .number("unchanged", sum.unchanged)
      .number("missing", sum.missing)
      .number("errors", sum.errors)
      .number("problems", problems_.size() + more_problems_)
      .take();
}

JsonText Run::report() const {
  const auto end = row_.finished_at.value_or(s_.clock.wall());
  const auto duration = std::chrono::duration_cast<Millis>(end - started_wall_).count();
  std::string scans;
  for (const auto& target : targets_) {
    for (const auto& scan : target->scans) {
      const auto& c = scan->counts;
      scans += scans.empty() ? "[" : ",";
      scans += JsonObject()
                   .text("target", target->target.name)
                   .text("type", scan->type->name)
                   .number("listed", c.listed)
                   .number("read", c.read)
                   .number("filtered", c.filtered)
                   .number("new", c.fresh)
                   .number("changed", c.changed)
                   .number("renamed", c.renamed)
                   .number("unchanged", c.unchanged)
                   .number("missing", c.missing)
                   .number("skipped", c.skipped)
                   .number("errors", c.errors)
                   .flag("complete", scan->complete)
                   .take();
    }
  }
  auto problems = nlohmann::json::array();
  for (const auto& p : problems_) {
    auto& added = problems.emplace_back(
        nlohmann::json{{"target", p.target}, {"type", p.type}, {"code", p.code}, {"message", p.message}});
    if (!p.job.empty()) added["job"] = p.job;
    if (!p.plugin.empty()) added["plugin"] = p.plugin;
  }
  JsonObject report;
  report.text("run", row_.id.value).text("state", row_.state).text("trigger", row_.trigger);
  report.text("started_at", rfc3339(started_wall_));
  if (row_.finished_at) {
    report.text("finished_at", rfc3339(*row_.finished_at));
  } else {
    report.raw("finished_at", "null");
  }
  report.number("duration_ms", static_cast<std::uint64_t>(std::max<std::int64_t>(0, duration)));
  report.raw("scans", scans.empty() ? "[]" : scans + "]").raw("problems", problems.dump());
  if (more_problems_ > 0) report.number("more_problems", more_problems_);
  if (!followed_by_.empty()) {
    auto runs = nlohmann::json::array();
    for (const auto& run : followed_by_) runs.push_back(run.value);
    report.raw("followed_by", runs.dump());
  }
  if (const auto why = waiting(); !finished_ && !why.empty()) report.text("waiting", why);
  return report.take();
}

}  // namespace muster
