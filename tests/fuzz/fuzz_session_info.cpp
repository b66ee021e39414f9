#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "latchfs/protocol/documents.hpp"

// Any bytes give session information that can be written and read again, or Errc::corrupt.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace latchfs;
  const auto info = protocol::parse_session_info(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!info) {
    if (info.error().code != Errc::corrupt) std::abort();
    return 0;
  }
  // Writing can make a text longer than what is read back; what is read back is the same.
  const auto again = protocol::parse_session_info(protocol::to_text(*info));
  if (again && *again != *info) std::abort();
  if (protocol::same_boot(*info, *info) != (!info->boot_id.empty() && info->pid_namespace != 0)) std::abort();
  return 0;
}
