#pragma once
#include <array>
#include <charconv>
#include <cstring>
#include <string>

namespace latchfs::files {

/// The /proc name of a descriptor. Calls that take only a path reach an O_PATH descriptor by it, with no lookup on the
/// share.
class FdPath {
 public:
  explicit FdPath(int fd) {
    std::memcpy(text_.data(), kPrefix, sizeof kPrefix - 1);
    char* const digits = text_.data() + sizeof kPrefix - 1;
    *std::to_chars(digits, text_.data() + text_.size() - 1, fd).ptr = '\0';
  }
  const char* c_str() const { return text_.data(); }

 private:
  static constexpr char kPrefix[] = "/proc/self/fd/";
  std::array<char, 32> text_{};
};

/// Where the file of a descriptor lies now, for logs; "?" where the kernel does not say. Any thread.
std::string path_of(int fd);

}  // namespace latchfs::files
