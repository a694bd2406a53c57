#include "schema/subjects.h"

#include <algorithm>
#include <initializer_list>

namespace muster {
namespace {

constexpr std::size_t kMaxNameBytes = 64;

// Not <cctype>: that depends on the locale.
constexpr bool is_alnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/// One letter or digit, then letters, digits and characters of `more`.
bool valid_name(std::string_view text, std::string_view more) {
  return !text.empty() && text.size() <= kMaxNameBytes && is_alnum(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [more](char c) { return is_alnum(c) || more.find(c) != std::string_view::npos; });
}

std::string join(std::string_view prefix, std::initializer_list<std::string_view> tokens) {
  std::size_t size = prefix.size();
  for (const auto token : tokens) size += 1 + token.size();
  std::string subject;
  subject.reserve(size);
  subject += prefix;
  for (const auto token : tokens) {
    subject += '.';
    subject += token;
  }
  return subject;
}

std::string_view or_dash(std::string_view ns) {
  return ns.empty() ? "-" : ns;
}

}  // namespace

std::string Subjects::job(std::string_view ns, std::string_view pool) const {
  return pool == kDefaultPool ? join(prefix_, {"job", ns}) : join(prefix_, {"job", ns, pool});
}

std::string Subjects::worker_job(std::string_view ns, const WorkerId& worker) const {
  return join(prefix_, {"worker", ns, worker.value, "job"});
}

std::string Subjects::worker_control(std::string_view ns, const WorkerId& worker) const {
  return join(prefix_, {"worker", ns, worker.value, "control"});
}

std::string Subjects::reply(std::string_view ns, const CoordinatorId& coordinator, const Token& token) const {
  return join(prefix_, {"reply", ns, coordinator.value, token.value});
}

std::string Subjects::replies(const CoordinatorId& coordinator) const {
  return join(prefix_, {"reply", "*", coordinator.value, "*"});
}

std::string Subjects::result(std::string_view ns) const {
  return join(prefix_, {"result", ns});
}
std::string Subjects::results() const {
  return join(prefix_, {"result", "*"});
}
std::string Subjects::announce(std::string_view ns) const {
  return join(prefix_, {"announce", ns});
}
std::string Subjects::announces() const {
  return join(prefix_, {"announce", "*"});
}
std::string Subjects::heartbeat(std::string_view ns) const {
  return join(prefix_, {"heartbeat", ns});
}
std::string Subjects::heartbeats() const {
  return join(prefix_, {"heartbeat", "*"});
}
std::string Subjects::rollcall() const {
  return join(prefix_, {"rollcall"});
}
std::string Subjects::api(std::string_view verb) const {
  return join(prefix_, {"api", verb});
}
std::string Subjects::apis() const {
  return join(prefix_, {"api", ">"});
}

std::string Subjects::event(std::string_view ns, std::string_view class_and_what) const {
  return join(prefix_, {"event", or_dash(ns), class_and_what});
}

std::string Subjects::events() const {
  return join(prefix_, {"event", ">"});
}

std::string Subjects::event_log(std::string_view ns, std::string_view class_and_what) const {
  return join(prefix_, {"eventlog", or_dash(ns), class_and_what});
}

std::string Subjects::event_logs() const {
  return join(prefix_, {"eventlog", ">"});
}

std::string Subjects::event_stream() const {
  std::string name = prefix_ + "_EVENTS";
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c == '.') c = '_';  // which a stream's name can't hold
  }
  return name;
}

bool valid_namespace(std::string_view text) {
  return valid_name(text, "_-");
}

bool valid_target_name(std::string_view text) {
  return valid_name(text, "._-");
}

bool valid_prefix(std::string_view text) {
  if (text.empty() || text.size() > kMaxNameBytes) return false;
  char before = '.';
  for (const char c : text) {
    if (c == '.' ? before == '.' : !is_alnum(c) && c != '_' && c != '-') return false;
    before = c;
  }
  return before != '.';
}

bool valid_token(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes && std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > ' ' && byte != 0x7f && c != '.' && c != '*' && c != '>';
  });
}

std::string_view namespace_of(std::string_view type) {
  return type.substr(0, type.find("::"));
}

std::string_view subject_token(std::string_view subject, std::string_view prefix, std::size_t index) {
  if (subject.size() <= prefix.size() || subject[prefix.size()] != '.' || subject.substr(0, prefix.size()) != prefix) {
    return {};
  }
  subject.remove_prefix(prefix.size() + 1);
  for (; index > 0; --index) {
    const auto dot = subject.find('.');
    if (dot == std::string_view::npos) return {};
    subject.remove_prefix(dot + 1);
  }
  return subject.substr(0, subject.find('.'));
}

}  // namespace muster
