// A configuration file: any bytes must be taken or refused with "file:line: sentence".
#include <cstdint>
#include <cstdlib>
#include <string>

#include "config/yaml_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace latchfs::config;
  Options options;
  const auto applied = apply_yaml(std::string(reinterpret_cast<const char*>(data), size), "f", options);
  if (!applied && (applied.error().what.rfind("f:", 0) != 0 || applied.error().code != latchfs::Errc::refused))
    std::abort();
  return 0;
}
