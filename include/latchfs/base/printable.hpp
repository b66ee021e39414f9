#pragma once
#include <string>
#include <string_view>

namespace latchfs {

/// The text with all that could steer a terminal or forge a line of a log written as `\xNN`: control characters (also
/// those of two bytes, U+0080 to U+009F) and bytes that are no UTF-8. Everything else stays as it is; the result is
/// always valid UTF-8. Any thread.
std::string printable(std::string_view text);

}  // namespace latchfs
