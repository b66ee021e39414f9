#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "latchfs/protocol/entry_name.hpp"

// Names in beats/, sessions/ and inbox/: what parses has one spelling.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace latchfs::protocol;
  const std::string_view name(reinterpret_cast<const char*>(data), size);
  if (const auto beat = parse_beat_name(name)) {
    if (format(*beat) != name) std::abort();
    if (!parse_session_name(beat->sid.text)) std::abort();
    const BeatEntry next{beat->sid, next_beat(beat->beat.value_or(latchfs::BeatNumber{0}))};
    if (parse_beat_name(format(next)) != next) std::abort();
  }
  if (const auto sid = parse_session_name(name)) {
    if (sid->text != name) std::abort();
  }
  return 0;
}
