#pragma once
#include <string>
#include <string_view>

#include "latchfs/base/clock.hpp"
#include "latchfs/base/error.hpp"

namespace latchfs {

/// Reads "200ms", "5s", "1m", "2h": a decimal number (a fraction is allowed: "1.5s") and a unit that must be there.
/// Fails with Errc::refused on anything else, a negative value or more than 365 days. Any thread.
Result<Nanos> parse_duration(std::string_view text);

/// The shortest text that parse_duration reads back as the same value, to the millisecond. Any thread.
std::string format_duration(Nanos value);

}  // namespace latchfs
