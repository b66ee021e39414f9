#include "engine/mount_table.hpp"

#include <fmt/format.h>

#include <sstream>

namespace latchfs::engine {

std::string mounted_type(std::istream& mountinfo, unsigned major, unsigned minor) {
  const std::string wanted = fmt::format("{}:{}", major, minor);
  std::string line;
  while (std::getline(mountinfo, line)) {
    std::istringstream fields(line);
    std::string id, parent, device, word;
    if (!(fields >> id >> parent >> device) || device != wanted) continue;
    // Optional fields of any number end with a single dash; blanks in paths are written as \040.
    while (fields >> word && word != "-") continue;
    if (fields >> word) return word;
  }
  return {};
}

}  // namespace latchfs::engine
