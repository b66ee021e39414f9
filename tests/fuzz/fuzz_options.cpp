// The text of -o: any bytes must be split, taken or refused with a sentence; what was taken must be takeable again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "config/table.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace latchfs::config;
  const std::string text(reinterpret_cast<const char*>(data), size);
  Options options;
  for (const Setting& setting : split_words(text)) {
    const auto first = apply(setting, options);
    if (!first && (first.error().what.empty() || first.error().code != latchfs::Errc::refused)) std::abort();
    Options again;
    if (apply(setting, again).has_value() != first.has_value()) std::abort();
  }
  return 0;
}
