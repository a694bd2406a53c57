#pragma once

#include "muster/properties.h"
#include "session.h"

namespace muster::postgres {

/// Statements of one change, in order: after the first that fails none is sent any more.
class Statements {
 public:
  explicit Statements(Session& session) : session_(session) {}

  /// `made`  says that the object itself is there: what exists already, or is missing, is then something else that the
  ///         declaration names
  void made() { made_ = true; }
  void run(const std::string& sql);
  /// An error of our own.
  void refuse(Error error);
  [[nodiscard]] Result<void> result() const { return result_; }
  [[nodiscard]] bool failed() const { return !result_; }

 private:
  Session& session_;
  Result<void> result_;
  bool made_ = false;
};

// Each makes an object as declared, or changes it from `before` to what `wanted` says of some of its properties.

Result<void> create_role(Session& session, const Json& declared);
Result<void> change_role(Session& session, const Json& before, const Json& wanted);
Result<void> create_database(Session& session, const Json& declared);
Result<void> change_database(Session& session, const Json& before, const Json& wanted);
Result<void> create_schema(Session& session, const Json& declared);
Result<void> change_schema(Session& session, const Json& before, const Json& wanted);
Result<void> create_extension(Session& session, const Json& declared);
Result<void> change_extension(Session& session, const Json& before, const Json& wanted);

}  // namespace muster::postgres
