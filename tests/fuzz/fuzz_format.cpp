#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "latchfs/protocol/documents.hpp"

// Any bytes give a format that can be written and read again, or an error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace latchfs;
  const auto doc = protocol::parse_format(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!doc) {
    if (doc.error().code != Errc::corrupt && doc.error().code != Errc::refused) std::abort();
    return 0;
  }
  if (!protocol::check(doc->times)) std::abort();
  // Times are written in milliseconds, so the first writing may round; after that nothing changes any more.
  const auto again = protocol::parse_format(protocol::to_text(*doc));
  if (!again) return 0;  // rounded below what the rules allow
  if (again->own_inode != doc->own_inode || again->share_uuid != doc->share_uuid) std::abort();
  const auto third = protocol::parse_format(protocol::to_text(*again));
  if (!third || *third != *again) std::abort();
  return 0;
}
