#include "coordinator/cli/output.h"

#include <clocale>
#include <cwchar>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <ostream>
#include <utility>

#include "schema/shown_text.h"
#include "schema/utf8.h"

namespace muster::cli {
namespace {

constexpr std::size_t kGap = 2;             // blanks between columns
constexpr std::size_t kNarrowest = 8;       // columns are not cut below this
constexpr long long kProgressEvery = 3000;  // ms between lines where there is no terminal

/// Columns that a character takes up: none where it is put onto the one before it, two where it is East Asian or emoji.
std::size_t columns_of(std::uint32_t code) {
  if (code < 0x300) return 1;
  static const locale_t kUtf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (kUtf8 == nullptr) return 1;
  const locale_t before = uselocale(kUtf8);
  const int columns = wcwidth(static_cast<wchar_t>(code));
  uselocale(before);
  return columns < 0 ? 1 : static_cast<std::size_t>(columns);
}

/// How many bytes of `text` take up at most `width` columns, and how many columns these are.
std::pair<std::size_t, std::size_t> fitting(std::string_view text, std::size_t width) {
  std::size_t bytes = 0, columns = 0;
  while (bytes < text.size()) {
    std::uint32_t code = 0;
    const bool ascii = static_cast<unsigned char>(text[bytes]) < 0x80;
    const std::size_t length = ascii ? 1 : decode_character(text.substr(bytes), code);
    const std::size_t more = length == 0 ? 1 : columns_of(code);
    if (columns + more > width) break;
    columns += more;
    bytes += std::max<std::size_t>(length, 1);
  }
  return {bytes, columns};
}

/// `text` cut to `width` columns, the last one then an ellipsis.
std::string cut(const std::string& text, std::size_t width) {
  if (fitting(text, width).first == text.size()) return text;
  return text.substr(0, fitting(text, std::max<std::size_t>(width, 1) - 1).first) + "…";
}

/// The escape sequence of a word that tells a state, empty for others.
std::string_view colour_of(std::string_view word) {
  constexpr std::array<std::string_view, 7> kBad{"failed",      "missing",  "lost",       "rejected",
                                                 "quarantined", "degraded", "unreachable"};
  constexpr std::array<std::string_view, 6> kOdd{"partial", "stale", "draining", "changed", "removed", "drifted"};
  constexpr std::array<std::string_view, 3> kGood{"complete", "active", "ok"};
  const auto is_in = [&](const auto& words) { return std::find(words.begin(), words.end(), word) != words.end(); };
  if (is_in(kBad)) return "\x1b[31m";
  if (is_in(kOdd)) return "\x1b[33m";
  if (is_in(kGood)) return "\x1b[32m";
  return {};
}

/// Takes from the widest columns that may be cut until the line fits.
void shrink(std::vector<std::size_t>& widths, const std::vector<Column>& columns, std::size_t terminal) {
  const auto total = [&] {
    std::size_t sum = kGap * (widths.size() - 1);
    for (const std::size_t width : widths) sum += width;
    return sum;
  };
  while (total() > terminal) {
    std::size_t* widest = nullptr;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (!columns[i].whole && (widest == nullptr || widths[i] > *widest)) widest = &widths[i];
    }
    if (widest == nullptr || *widest <= kNarrowest) return;
    --*widest;
  }
}

void append_line(std::string& out, const Screen& screen, const std::vector<Column>& columns,
                 const std::vector<std::string>& cells, const std::vector<std::size_t>& widths, bool header) {
  std::string blanks;  // kept back, so that no line ends in them
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string cell = screen.width > 0 ? cut(cells[i], widths[i]) : cells[i];
    const std::size_t width = display_width(cell);
    const std::string padding(widths[i] > width ? widths[i] - width : 0, ' ');
    const std::string_view colour = !screen.colour ? std::string_view{} : header ? "\x1b[1m" : colour_of(cell);
    if (columns[i].align == Align::kRight) blanks += padding;
    if (!cell.empty()) out += std::exchange(blanks, {});
    out += colour;
    out += cell;
    if (!colour.empty()) out += "\x1b[0m";
    if (columns[i].align == Align::kLeft) blanks += padding;
    blanks.append(kGap, ' ');
  }
  out += '\n';
}

}  // namespace

void note(Screen& screen, std::string_view text) {
  if (screen.verbosity != Verbosity::kQuiet) screen.err << text << '\n';
}

std::string escape(std::string_view text) {
  return shown_text(text);
}

std::string log_line(std::string_view process, std::string_view line) {
  return escape(process) + ": " + escape(line);
}

std::size_t display_width(std::string_view text) {
  return fitting(text, std::numeric_limits<std::size_t>::max()).second;
}

std::string plain(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return {};
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string field(const Json& object, std::string_view name) {
  const auto it = object.find(name);
  return it == object.end() ? std::string() : plain(*it);
}

Column column(std::string header, std::string field_name, Align align) {
  return {std::move(header), [name = std::move(field_name)](const Json& item) { return field(item, name); }, align};
}

Column id_column(std::string header, std::string field_name) {
  auto made = column(std::move(header), std::move(field_name));
  made.whole = true;
  return made;
}

ListWriter::ListWriter(Screen& screen, std::vector<Column> columns, std::string empty)
    : screen_(screen), columns_(std::move(columns)), empty_(std::move(empty)) {
  for (const Column& one : columns_) widths_.push_back(display_width(one.header));
}

void ListWriter::add(const std::string& item) {
  ++items_;
  switch (screen_.format) {
    case Format::kTable: {
      const Json object = Json::parse(item);
      std::vector<std::string> row;
      for (const Column& one : columns_) row.push_back(escape(one.text(object)));
      rows_.push_back(std::move(row));
      break;
    }
    case Format::kJson:
      text_ += items_ == 1 ? "[" : ",\n";
      append_portable_json(text_, item);
      break;
    case Format::kNdjson:
      append_portable_json(text_, item);
      text_ += '\n';
      break;
    case Format::kYaml:
      text_ += to_yaml(Json::array({Json::parse(item)}));
      break;
  }
}

void ListWriter::write_rows() {
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], display_width(row[i]));
  }
  std::vector<std::size_t> widths = widths_;
  if (screen_.width > 0) shrink(widths, columns_, screen_.width);
  if (!rows_.empty() && !std::exchange(header_written_, true)) {
    std::vector<std::string> headers;
    for (const Column& one : columns_) headers.push_back(one.header);
    append_line(text_, screen_, columns_, headers, widths, true);
  }
  for (const auto& row : rows_) append_line(text_, screen_, columns_, row, widths, false);
  rows_.clear();
}

bool ListWriter::flush() {
  if (screen_.format == Format::kTable) write_rows();
  screen_.out << std::exchange(text_, {}) << std::flush;
  return static_cast<bool>(screen_.out);
}

bool ListWriter::finish() {
  const bool none = items_ == 0;
  if (screen_.format == Format::kJson) text_ += none ? "[]\n" : "]\n";
  if (screen_.format == Format::kYaml && none) text_ += "[]\n";
  if (screen_.format == Format::kTable && none) note(screen_, empty_);
  return flush();
}

void write_table(Screen& screen, const std::vector<Column>& columns, const Json& items) {
  Screen table = screen;
  table.format = Format::kTable;
  table.verbosity = Verbosity::kQuiet;  // an empty part of an answer needs no remark
  ListWriter writer(table, columns, {});
  for (const Json& item : items) writer.add(item.dump());
  writer.flush();
}

void write_object(Screen& screen, const Json& object, const std::function<void(const Json&)>& table) {
  switch (screen.format) {
    case Format::kTable:
      table(object);
      break;
    case Format::kJson:
      screen.out << portable_json(object.dump(2)) << '\n';
      break;
    case Format::kNdjson:
      screen.out << portable_json(object.dump()) << '\n';
      break;
    case Format::kYaml:
      screen.out << to_yaml(object);
      break;
  }
  screen.out << std::flush;
}

void write_answer(Screen& screen, const std::string& answer, const std::function<void(const Json&)>& table) {
  const bool is_line = answer.find('\n') == std::string::npos;
  if (screen.format != Format::kNdjson || !is_line) return write_object(screen, Json::parse(answer), table);
  screen.out << portable_json(answer) << '\n' << std::flush;
}

void Progress::show(const std::string& line) {
  if (screen_.verbosity == Verbosity::kQuiet) return;
  if (screen_.progress) {
    // A line that goes on in the next row would stay, and another one come with each change.
    const auto width = screen_.progress_width;
    screen_.err << "\r\x1b[K" << (width > 0 ? cut(line, width) : line) << std::flush;
    shown_ = true;
    return;
  }
  const auto now =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count();
  if (screen_.verbosity != Verbosity::kVerbose || line == last_ || now - last_at_ < kProgressEvery) return;
  screen_.err << line << '\n';
  last_ = line;
  last_at_ = now;
}

void Progress::clear() {
  if (std::exchange(shown_, false)) screen_.err << "\r\x1b[K" << std::flush;
}

}  // namespace muster::cli
