#include <cerrno>
#include <string>
#include <system_error>

#include "muster/properties.h"

namespace muster {
namespace {

Errc errc_of(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      return Errc::kNotFound;
    case EEXIST:
      return Errc::kAlreadyExists;
    case EINVAL:
    case ENAMETOOLONG:
    case EISDIR:
    case ELOOP:
      return Errc::kInvalidRequest;
    case ENOSYS:
    case EOPNOTSUPP:
      return Errc::kUnsupported;
    case EACCES:
    case EPERM:
    case EROFS:
      return Errc::kAccessDenied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return Errc::kLimit;
    case EMFILE:
    case ENFILE:
    case EAGAIN:
      return Errc::kThrottling;
    case EBUSY:
    case ENOTEMPTY:
    case ESTALE:
      return Errc::kConflict;
    case ECONNREFUSED:
    case ENODEV:
    case ENXIO:
      return Errc::kServiceUnavailable;
    case ECONNRESET:
    case ECONNABORTED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EPIPE:
      return Errc::kNetwork;
    case ETIMEDOUT:
      return Errc::kTimeout;
    default:
      return Errc::kInternalFailure;
  }
}

}  // namespace

Error failure(Errc code, std::string message) {
  return Error{.code = code, .message = std::move(message)};
}
Error not_found(std::string message) {
  return failure(Errc::kNotFound, std::move(message));
}
Error already_exists(std::string message) {
  return failure(Errc::kAlreadyExists, std::move(message));
}
Error invalid_request(std::string message) {
  return failure(Errc::kInvalidRequest, std::move(message));
}
Error unsupported(std::string message) {
  return failure(Errc::kUnsupported, std::move(message));
}
Error access_denied(std::string message) {
  return failure(Errc::kAccessDenied, std::move(message));
}
Error conflict(std::string message) {
  return failure(Errc::kConflict, std::move(message));
}

Error limit(std::string message) {
  return failure(Errc::kLimit, std::move(message));
}

Error not_stabilized(std::string message) {
  return failure(Errc::kNotStabilized, std::move(message));
}

Error unavailable(std::string message) {
  return failure(Errc::kServiceUnavailable, std::move(message));
}

Error throttled(std::string message, Millis retry_after) {
  return Error{.code = Errc::kThrottling, .message = std::move(message), .retry_after = retry_after};
}

Error from_errno(int number, std::string_view what) {
  return failure(errc_of(number), std::string(what) + ": " + std::generic_category().message(number));
}

}  // namespace muster
