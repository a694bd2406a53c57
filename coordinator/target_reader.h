#pragma once

#include <set>
#include <string>

#include "coordinator/yaml_reader.h"

namespace muster {

/// Reads targets, as they stand in muster.yaml and in declarations: design section 9.
class TargetReader {
 public:
  explicit TargetReader(YamlReader& yaml) : yaml_(yaml) {}

  /// One target; a name that another one has already is a mistake.
  TargetConfig read(const YamlNode& node);

 private:
  void filter(const YamlNode& node, TargetConfig& target);
  void condition(const YamlNode& node, MatchFilter& filter);
  void tag_match(const YamlNode& node, MatchFilter& filter);
  void property_match(const YamlNode& node, MatchFilter& filter);
  void property_value(const YamlNode& node, PropertyMatch& match);

  YamlReader& yaml_;
  std::set<std::string> names_;
};

/// `NS::Segment`, two or more segments.
bool valid_type(std::string_view text);
/// Whether something may be looked at so often: every 100 ms to 365 d; 0: off.
bool is_interval(Millis every);
/// An interval, as is_interval() says.
YamlReader::Handler interval_handler(YamlReader& yaml, Millis& out);

inline constexpr std::string_view kPoolWanted = "a pool: letters, digits, _ and -, at most 64";
inline constexpr std::string_view kTargetNameWanted = "a name: letters, digits, `.`, `_` and `-`, at most 64";

}  // namespace muster
