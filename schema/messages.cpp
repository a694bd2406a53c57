#include "schema/messages.h"

#include <array>

namespace muster {

std::string_view operation_name(const JobOperation& operation) {
  static constexpr std::array<std::string_view, std::variant_size_v<JobOperation>> kNames = {
      "list", "read", "create", "update", "delete", "status", "inspect", "call"};
  return kNames.at(operation.index());
}

bool is_mutation(const JobOperation& operation) {
  if (const auto* call = std::get_if<CallJob>(&operation)) {
    return call->kind == CallKind::kInvoke || call->kind == CallKind::kAct || call->kind == CallKind::kRecover;
  }
  return std::holds_alternative<CreateJob>(operation) || std::holds_alternative<UpdateJob>(operation) ||
         std::holds_alternative<DeleteJob>(operation);
}

}  // namespace muster
