// What discovery is measured against, in one thread from socket to disk.
//
// bare: page -> Cap'n Proto -> one tag condition (simdjson) -> hash -> upsert into one table whose key is a hash; 16
//   pages in flight; WAL, synchronous NORMAL, 10,000 rows a transaction and a checkpoint.
// same-work: what bare does, but asks for a page when it has the one before, as a listing must; looks at both filters
//   and the label; and writes the rows that the product writes: its schema, its indexes, its INSERT statements, its
//   settings of the file, and an event in the outbox for each resource, all of it durable at the end.
//
// Both leave out: jobs, leases, tokens and retries; finding out what is missing, renamed, listed twice or written by a
// command meanwhile; the check that properties are canonical; progress; the publication of events.

#include <capnp/serialize.h>
#include <re2/re2.h>
#include <simdjson.h>
#include <xxhash.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "reply.capnp.h"
#include "sql/statements.h"
#include "tests/bench/loop_client.h"
#include "tests/bench/sqlite_file.h"
#include "tests/bench/stopwatch.h"
#include "tests/bench/yardstick.h"

namespace muster::bench {
namespace {

constexpr std::uint32_t kRowsPerTransaction = 10'000;
constexpr std::uint32_t kWindow = 16;  // pages in flight of bare; batches of reads in flight
constexpr std::uint32_t kReadBatch = 64;

constexpr const char* kBareTable = R"(
  PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 10000;
  PRAGMA cache_size = -1048576; PRAGMA mmap_size = 1073741824;
  CREATE TABLE resources (key INTEGER PRIMARY KEY, type TEXT, native_id TEXT, properties TEXT, hash INTEGER,
                          first_seen INTEGER, changed_at INTEGER);)";
constexpr const char* kBareUpsert = R"(
  INSERT INTO resources VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
  ON CONFLICT (key) DO UPDATE SET properties = excluded.properties, hash = excluded.hash, changed_at = excluded.changed_at
  WHERE hash <> excluded.hash)";
struct Judgement {
  bool kept = true;
  std::string_view label;
};

/// One pass over the properties: the filters `tag Temp = true` (both yardsticks) and `$.name` =~ /^tmp_/ (same-work),
/// and the label `$.name`.
class Filter {
 public:
  /// `text` is followed by SIMDJSON_PADDING readable bytes.
  Judgement judge(std::string_view text, bool names_too) {
    Judgement found;
    auto document = parser_.iterate(text.data(), text.size(), text.size() + simdjson::SIMDJSON_PADDING).take_value();
    for (auto tag : document["Tags"].get_array()) {
      if (tag["Key"].get_string().take_value() != "Temp") continue;
      found.kept = tag["Value"].get_string().take_value() != "true";
      break;
    }
    if (!names_too || !found.kept) return found;
    found.label = document["name"].get_string().take_value();
    found.kept = !re2::RE2::PartialMatch(re2::StringPiece(found.label.data(), found.label.size()), temporary_);
    return found;
  }

 private:
  simdjson::ondemand::parser parser_;
  const re2::RE2 temporary_{"^tmp_"};
};

class Pipeline {
 public:
  explicit Pipeline(const PageOptions& options)
      : options_(options), bare_(options.kind == "bare"), client_(options.url, "bench.reply.>"), db_(options.store) {
    if (bare_) {
      db_.run(kBareTable);
      upsert_ = db_.prepare(kBareUpsert);
      return;
    }
    db_.run(kProductSettings);
    for (const char* migration : sql::migrations) db_.run(migration);
    insert_ = db_.prepare(sql::insert_resource);
    change_ = db_.prepare(sql::change_resource);
    record_ = db_.prepare(sql::record_history);
    event_ = db_.prepare(sql::insert_event);
  }

  void await_worker() { client_.await("bench.pages", "bench.reply.ready", "I 0 1"); }

  /// Lists everything once, `later` when a share of it has changed. Seconds from the first request to the last commit.
  double pass(bool later) {
    const Stopwatch watch;
    list_ = options_.reads ? 'I' : later ? 'C' : 'L';
    if (!bare_) load_known();
    db_.run("BEGIN");
    rows_ = 0;
    const auto share = options_.resources / options_.types;
    for (std::uint32_t type = 0; type < options_.types; ++type) {
      lists_.push_back({type * share, (type + 1) * share});
      const auto pages = bare_ && !options_.reads ? std::max(1U, kWindow / options_.types) : 1;
      for (std::uint32_t i = 0; i < pages; ++i) ask_page(type);
    }
    while (in_flight_ > 0) {
      client_.turn_for_answers([&](const Arrived& message) { take(message); });
    }
    db_.run("COMMIT");
    lists_.clear();
    return watch.seconds();
  }

  std::uint64_t kept = 0, filtered = 0, unchanged = 0;  // of the last pass

 private:
  struct Listing {
    std::uint32_t next, end;
  };
  struct Known {
    std::int64_t row;
    XXH128_hash_t content;
  };

  void ask_page(std::uint32_t type) {
    auto& list = lists_[type];
    if (list.next >= list.end) return;
    const auto count = std::min(options_.page, list.end - list.next);
    char text[64];
    std::snprintf(text, sizeof text, "%c %u %u", list_, list.next, count);
    list.next += count;
    ++in_flight_;
    client_.publish("bench.pages", ("bench.reply.page." + std::to_string(type)).c_str(), text);
  }

  void ask_reads() {
    while (!to_read_.empty() && reads_ < kWindow && (to_read_.size() >= kReadBatch || in_flight_ == reads_)) {
      std::string text = "R ";
      for (std::uint32_t i = 0; i < kReadBatch && !to_read_.empty(); ++i) {
        text += to_read_.front();
        text += '\n';
        to_read_.pop_front();
      }
      ++in_flight_;
      ++reads_;
      client_.publish("bench.pages", "bench.reply.read.0", text);
    }
  }

  void take(const Arrived& message) {
    const char* subject = message.subject() + std::strlen("bench.reply.");
    const bool page = *subject == 'p';
    if (!std::string_view(subject).ends_with(".more")) {
      --in_flight_;
      if (page) ask_page(static_cast<std::uint32_t>(std::atoi(subject + 5)));  // is made while this one is stored
      if (!page) --reads_;
    }
    // One copy gives what both parsers want: words, and padding behind the last text.
    const auto data = message.data();
    buffer_.resize(data.size() / sizeof(capnp::word) + simdjson::SIMDJSON_PADDING);
    std::memcpy(buffer_.data(), data.data(), data.size());
    capnp::FlatArrayMessageReader reader(kj::arrayPtr(buffer_.data(), data.size() / sizeof(capnp::word)),
                                         {1 << 24, 64});
    for (const auto item : reader.getRoot<wire::JobReply>().getBody().getResult().getList().getItems()) {
      const auto id = item.getNativeId();
      if (page && options_.reads) {
        to_read_.emplace_back(id.begin(), id.size());
        continue;
      }
      const auto properties = item.getProperties();
      const std::string_view text(properties.begin(), properties.size()), native_id(id.begin(), id.size());
      bare_ ? store_bare(native_id, text) : store(native_id, {item.getUid().begin(), item.getUid().size()}, text);
      if (rows_ >= kRowsPerTransaction) {
        db_.run("COMMIT; BEGIN");
        rows_ = 0;
      }
    }
    if (options_.reads) ask_reads();
  }

  void store_bare(std::string_view id, std::string_view text) {
    if (!filter_.judge(text, false).kept) {
      ++filtered;
      return;
    }
    ++kept;
    db_.write(upsert_, static_cast<std::int64_t>(XXH3_64bits(id.data(), id.size())), kType, id, text,
              static_cast<std::int64_t>(XXH3_64bits(text.data(), text.size())), now_ns());
    ++rows_;
  }

  void store(std::string_view id, std::string_view uid, std::string_view text) {
    const auto key = XXH3_64bits(id.data(), id.size());
    const auto content = XXH3_128bits(text.data(), text.size());
    const auto known = known_.find(key);
    if (known != known_.end() && XXH128_isEqual(known->second.content, content)) {
      ++unchanged;
      return;
    }
    const auto judged = filter_.judge(text, true);
    if (!judged.kept) {
      ++filtered;
      return;
    }
    ++kept;
    XXH128_canonical_t hash;
    XXH128_canonicalFromHash(&hash, content);
    const auto now = now_ns();
    if (known == known_.end()) {
      db_.write(insert_, static_cast<std::int64_t>(key), std::int64_t{1}, std::int64_t{0}, now, hash, id, uid,
                judged.label, text);
      log(now, "resource.discovered", db_.last_row(), id, hash, {});
    } else {
      constexpr std::string_view kPatch = R"([{"op":"replace","path":"/revision","value":1}])";
      db_.write(record_, known->second.row, now, std::string_view("changed"), kPatch, std::int64_t{3}, std::int64_t{0});
      db_.write(change_, known->second.row, now, hash, uid, judged.label, text);
      log(now, "resource.changed", known->second.row, id, hash, kPatch);
      ++rows_;
    }
    rows_ += 2;
  }

  void log(std::int64_t now, std::string_view what, std::int64_t row, std::string_view id,
           const XXH128_canonical_t& hash, std::string_view patch) {
    char subject[27];
    std::snprintf(subject, sizeof subject, "01M7ZDGFYVGRE5%012llX", static_cast<unsigned long long>(row));
    event_text_ = R"({"id":")";
    event_text_ += subject;
    event_text_ += R"(","target":"cloud","type":"FAKE::Cloud::Thing0","native_id":")";
    event_text_ += id;
    event_text_ += R"(","run":"01M7ZDGFYVGRE53ZH6E4XYQB7R","hash":")";
    for (const auto byte : hash.digest) {
      event_text_ += "0123456789abcdef"[byte >> 4];
      event_text_ += "0123456789abcdef"[byte & 15];
    }
    event_text_ += '"';
    if (!patch.empty()) event_text_.append(R"(,"patch":)").append(patch);
    event_text_ += '}';
    db_.write(event_, ++sequence_, now, bytes_before_, std::string_view("FAKE"), what, std::string_view(subject, 26),
              std::string_view(event_text_));
    bytes_before_ += static_cast<std::int64_t>(event_text_.size());
  }

  void load_known() {
    known_.clear();
    auto* rows = db_.prepare("SELECT key, row, content FROM resources");
    while (sqlite3_step(rows) == SQLITE_ROW) {
      XXH128_canonical_t hash;
      std::memcpy(hash.digest, sqlite3_column_blob(rows, 2), sizeof hash.digest);
      known_[static_cast<std::uint64_t>(sqlite3_column_int64(rows, 0))] = {sqlite3_column_int64(rows, 1),
                                                                           XXH128_hashFromCanonical(&hash)};
    }
    sqlite3_finalize(rows);
  }

  static constexpr std::string_view kType = "FAKE::Cloud::Thing0";
  const PageOptions& options_;
  bool bare_;
  LoopClient client_;
  SqliteFile db_;
  sqlite3_stmt *upsert_ = nullptr, *insert_ = nullptr, *change_ = nullptr, *record_ = nullptr, *event_ = nullptr;
  Filter filter_;
  char list_ = 'L';  // what a page is asked for with
  std::vector<Listing> lists_;
  std::deque<std::string> to_read_;
  std::uint32_t in_flight_ = 0, reads_ = 0, rows_ = 0;
  std::vector<capnp::word> buffer_;
  std::unordered_map<std::uint64_t, Known> known_;
  std::string event_text_;
  std::int64_t sequence_ = 0, bytes_before_ = 0;
};

}  // namespace

int run_pipeline(const PageOptions& options) {
  Pipeline pipeline(options);
  pipeline.await_worker();
  std::string seconds;
  for (int i = 0; i < options.passes; ++i) {
    pipeline.kept = pipeline.filtered = pipeline.unchanged = 0;
    const bool later = i == 2;  // the first finds all, the second nothing new
    seconds += (i > 0 ? "," : "") + std::to_string(pipeline.pass(later));
  }
  std::printf(R"({"seconds":[%s],"kept":%llu,"filtered":%llu,"unchanged":%llu})"
              "\n",
              seconds.c_str(), static_cast<unsigned long long>(pipeline.kept),
              static_cast<unsigned long long>(pipeline.filtered), static_cast<unsigned long long>(pipeline.unchanged));
  return 0;
}

}  // namespace muster::bench
