#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace muster::cli {

using Json = nlohmann::ordered_json;

enum class Format { kTable, kJson, kNdjson, kYaml };
enum class Verbosity { kQuiet, kNormal, kVerbose };

/// Where a verb writes: the answer to `out`, everything else to `err`.
struct Screen {
  std::ostream& out;
  std::ostream& err;
  Format format = Format::kTable;
  Verbosity verbosity = Verbosity::kNormal;
  std::size_t width = 0;           // of the terminal that `out` is, in columns; 0: not a terminal, nothing is cut
  bool colour = false;             // `out` is a terminal that wants colour
  bool progress = false;           // `err` is a terminal
  std::size_t progress_width = 0;  // of that, in columns; 0: not known
};

/// A remark for people, on `err`; not with -q.
void note(Screen& screen, std::string_view text);

/// `text` on one line: control characters, direction marks and what is no UTF-8 as \n, \t, \xNN or \u{NNNN}.
std::string escape(std::string_view text);

/// A line that a process wrote, or one that tells of it, with its name before it; both escaped.
std::string log_line(std::string_view process, std::string_view line);

/// Columns that `text`, escaped UTF-8, takes up on a terminal.
std::size_t display_width(std::string_view text);

/// YAML of any value, block style, ending in a newline.
std::string to_yaml(const Json& value, std::size_t indent = 0);
/// JSON with escapes for what may not stand in a file of YAML, would be a line break there or to who reads line by
/// line, or be obeyed by a terminal.
std::string portable_json(std::string_view json);
void append_portable_json(std::string& out, std::string_view json);

/// A value as people read it: text as it is, nothing for null, otherwise JSON.
std::string plain(const Json& value);
/// plain() of a field; empty when there is none.
std::string field(const Json& object, std::string_view name);

enum class Align { kLeft, kRight };

struct Column {
  std::string header;
  std::function<std::string(const Json&)> text;  // not escaped yet
  Align align = Align::kLeft;
  bool whole = false;  // never cut
};
/// A column that shows a field.
Column column(std::string header, std::string field_name, Align align = Align::kLeft);
/// The same of what other commands take: to be copied whole.
Column id_column(std::string header, std::string field_name);

/// Writes a list in the format that was asked for, page by page: memory does not grow with it.
class ListWriter {
 public:
  /// `empty`   what to say, in a table, of a list without items
  ListWriter(Screen& screen, std::vector<Column> columns, std::string empty);

  /// `item`   JSON text of one object, on one line
  void add(const std::string& item);
  /// Writes what add() has kept. False when nobody reads any more or the disk is full: stop.
  bool flush();
  /// Ends the list. False as flush().
  bool finish();

 private:
  void write_rows();

  Screen& screen_;
  std::vector<Column> columns_;
  std::string empty_;
  std::vector<std::vector<std::string>> rows_;  // of the page, escaped
  std::vector<std::size_t> widths_;
  std::string text_;  // of the page, other formats
  std::size_t items_ = 0;
  bool header_written_ = false;
};

/// A table all at once, without headers where all of them are empty.
void write_table(Screen& screen, const std::vector<Column>& columns, const Json& items);

/// Writes one object: `table` does it for that format.
void write_object(Screen& screen, const Json& object, const std::function<void(const Json&)>& table);
/// The same of its JSON text.
void write_answer(Screen& screen, const std::string& answer, const std::function<void(const Json&)>& table);

/// One line on a terminal that is written anew each time; on anything else nothing, or a line now and then with -v.
class Progress {
 public:
  explicit Progress(Screen& screen) : screen_(screen) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const std::string& line);
  void clear();

 private:
  Screen& screen_;
  bool shown_ = false;
  std::string last_;
  long long last_at_ = 0;  // ms of the steady clock
};

}  // namespace muster::cli
