// One decoder under libFuzzer; built once per message, with MUSTER_MESSAGE its type.
// Any bytes either are malformed or give a value that survives being written and read again.

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "schema/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using Message = muster::MUSTER_MESSAGE;
  const auto fail = [](const char* what) {
    std::fprintf(stderr, "%s\n", what);
    std::abort();
  };
  const auto value = muster::decode<Message>({reinterpret_cast<const char*>(data), size});
  if (!value.has_value()) {
    if (value.error().code != muster::Errc::kMalformed) fail("an error that is not kMalformed");
    return 0;
  }
  const auto again = muster::decode<Message>(muster::encode(*value));
  if (!again.has_value()) fail(again.error().message.c_str());
  if (!(*again == *value)) fail("decode(encode(value)) is another value");
  return 0;
}
