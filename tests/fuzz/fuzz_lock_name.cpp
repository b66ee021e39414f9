#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "latchfs/protocol/entry_name.hpp"

// A name that parses has one spelling, and one that looks like a claim is never overlooked.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace latchfs::protocol;
  const std::string_view name(reinterpret_cast<const char*>(data), size);
  const LockName parsed = parse_lock_name(name);
  if (const auto* entry = std::get_if<LockEntry>(&parsed)) {
    if (format(*entry) != name || name.size() > 255) std::abort();
    if (!entry->claim.range.valid()) std::abort();
  }
  const bool claim_like = name.substr(0, 2) == "h." || name.substr(0, 2) == "c.";
  if (claim_like && std::holds_alternative<ForeignName>(parsed)) std::abort();
  if (!claim_like && std::holds_alternative<UnknownClaim>(parsed)) std::abort();
  return 0;
}
