#pragma once

#include <map>
#include <string>
#include <vector>

#include "coordinator/config.h"
#include "coordinator/declaration.h"

namespace muster {

struct DeclarationFile {
  std::string name;  // for messages
  std::string text;
};

/// What files declare, or every mistake in them.
struct DeclarationResult {
  std::vector<Declaration> stacks;  // files of one stack are one declaration
  std::vector<TargetConfig> targets;
  std::vector<ConfigMistake> mistakes;  // empty: all is good
};

/// Reads declarations:
///   stack: NAME
///   targets: as in muster.yaml
///   on_drift: observe | alert | revert | absorb       of resources that do not say
///   resources: [{name, type, target, properties, native_id, parent, depends_on, on_drift,
///                lifecycle: {protect, replace: delete-first | create-first}}]
/// Texts in properties may hold references (secret_text.h); names that they refer to must be declared in the stack.
/// `variables`   for ${var:NAME}
DeclarationResult read_declarations(const std::vector<DeclarationFile>& files,
                                    const std::map<std::string, std::string>& variables);

/// Whether a YAML text looks like a declaration, and not like a configuration.
bool looks_like_declaration(const std::string& yaml);

}  // namespace muster
