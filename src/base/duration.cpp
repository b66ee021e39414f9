#include "latchfs/base/duration.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>

namespace latchfs {
namespace {

struct Unit {
  std::string_view name;
  double seconds;
};
constexpr std::array<Unit, 4> kUnits{{{"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}}};
constexpr double kLongest = 365.0 * 24 * 3600;

}  // namespace

Result<Nanos> parse_duration(std::string_view text) {
  double number = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const bool is_number = ec == std::errc{} && !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0;
  for (const Unit& u : kUnits) {
    if (!is_number || unit != u.name || number * u.seconds > kLongest) continue;
    return Nanos(static_cast<Nanos::rep>(number * u.seconds * 1e9 + 0.5));
  }
  return fail(Errc::refused, fmt::format("'{}' is no duration: write a number and a unit, as 200ms, 5s, 1m or 2h", text));
}

std::string format_duration(Nanos value) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(value).count();
  if (ms % 1000 != 0) return fmt::format("{}ms", ms);
  const auto s = ms / 1000;
  if (s != 0 && s % 3600 == 0) return fmt::format("{}h", s / 3600);
  if (s != 0 && s % 60 == 0) return fmt::format("{}m", s / 60);
  return fmt::format("{}s", s);
}

}  // namespace latchfs
