#include <charconv>

#include "coordinator/sqlite_store_impl.h"
#include "sql/statements.h"

namespace muster {
namespace {

constexpr std::string_view kPublished = "published";

}  // namespace

Result<void> SqliteStore::load_outbox() {
  auto stored = meta(kPublished);
  if (!stored) return stored.error();
  outbox_ = {};
  if (*stored) std::from_chars((*stored)->data(), (*stored)->data() + (*stored)->size(), outbox_.published);
  outbox_.last =
      outbox_.published;  // only published events are ever dropped: where none is left, counting goes on here
  auto rows = select(sql::last_event);
  if (rows.next()) {
    outbox_.last = static_cast<std::uint64_t>(rows.integer(0));
    outbox_.bytes = static_cast<std::uint64_t>(rows.integer(1));
    outbox_.last_at = rows.time(2);
  }
  committed_outbox_ = outbox_;
  return rows.result();
}

Result<std::uint64_t> SqliteStore::append_event(const EventRow& event) {
  write(sql::insert_event, outbox_.last + 1, event.at, outbox_.bytes, event.ns, event.what, event.subject, event.data);
  if (event.at < outbox_.last_at) write(sql::put_clock_step, outbox_.last + 1);
  if (failed_) return *failed_;
  outbox_.last_at = event.at;
  outbox_.bytes += event.data.size();
  return ++outbox_.last;
}

Result<std::vector<EventRow>> SqliteStore::events(std::uint64_t after, std::size_t limit) {
  auto rows = select(sql::select_events, after, limit);
  std::vector<EventRow> found;
  while (rows.next()) {
    found.push_back({.sequence = static_cast<std::uint64_t>(rows.integer(0)),
                     .at = rows.time(1),
                     .ns = rows.string(2),
                     .what = rows.string(3),
                     .subject = rows.string(4),
                     .data = rows.string(5)});
  }
  if (auto done = rows.result(); !done) return done.error();
  return found;
}

Result<std::uint64_t> SqliteStore::sequence_at(WallTime at) {
  const auto is_before = [&](std::uint64_t sequence) -> Result<bool> {
    auto rows = select(sql::event_time, sequence);
    const bool before = rows.next() && rows.time(0) < at;
    if (auto done = rows.result(); !done) return done.error();
    return before;
  };
  auto first = select(sql::first_event);
  std::uint64_t low = first.next() ? static_cast<std::uint64_t>(first.integer(0)) : outbox_.last + 1;
  if (auto done = first.result(); !done) return done.error();
  std::vector<std::uint64_t> ends;  // of stretches in which times grow
  auto steps = select(sql::clock_steps, low);
  while (steps.next()) ends.push_back(static_cast<std::uint64_t>(steps.integer(0)));
  if (auto done = steps.result(); !done) return done.error();
  ends.push_back(outbox_.last + 1);
  for (const auto end : ends) {
    // Sequences have no gaps: the first event of the stretch that is not before `at` is found by halving.
    auto high = end;
    while (low < high) {
      const auto middle = low + (high - low) / 2;
      const auto before = is_before(middle);
      if (!before) return before.error();
      *before ? low = middle + 1 : high = middle;
    }
    if (low < end) break;
  }
  return low - 1;
}

Result<std::uint64_t> SqliteStore::last_sequence() {
  return outbox_.last;
}

Result<std::uint64_t> SqliteStore::published() {
  return outbox_.published;
}

Result<void> SqliteStore::set_published(std::uint64_t sequence) {
  auto done = set_meta(kPublished, std::to_string(sequence));
  if (done) outbox_.published = sequence;
  return done;
}

Result<std::size_t> SqliteStore::prune_events(WallTime before, std::uint64_t max_bytes, std::size_t limit) {
  std::uint64_t last_to_go = 0;
  {
    auto rows = select(sql::oldest_events, outbox_.published, limit);
    while (rows.next()) {
      const bool old = rows.time(1) < before;
      const bool beyond = max_bytes > 0 && outbox_.bytes - static_cast<std::uint64_t>(rows.integer(2)) > max_bytes;
      if (!old && !beyond) break;
      last_to_go = static_cast<std::uint64_t>(rows.integer(0));
    }
    if (auto done = rows.result(); !done) return done.error();
  }
  if (last_to_go == 0) return std::size_t{0};
  const auto gone = write(sql::delete_events, last_to_go);
  write(sql::delete_clock_steps, last_to_go);
  if (failed_) return *failed_;
  return static_cast<std::size_t>(gone);
}

}  // namespace muster
