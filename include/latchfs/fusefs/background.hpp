#pragma once
#include <string>

#include "latchfs/base/error.hpp"
#include "latchfs/base/unique_fd.hpp"

namespace latchfs::fusefs {

/// Going to the background so that the starting process can report what became of the mount. Must be used before any
/// thread exists.
class Background {
 public:
  /// Forks. In the parent this never returns: it waits for report() of the child, prints its message (after "latchfs:
  /// ") to stderr and exits with its code (or with 2 and a clear message when the child died without a word). The child
  /// goes on in a new session. Errc::system when fork fails.
  static Result<Background> detach();
  /// A process that stays in the foreground: report() does nothing but print a failure to stderr.
  static Background foreground();

  /// Child: tells the parent to exit with `code` after printing `message` (empty: nothing). With code 0 stdio goes to
  /// /dev/null and the working directory to "/". Only the first call counts. One thread at a time.
  void report(int code, const std::string& message);

 private:
  UniqueFd status_{};
  bool detached_ = false;
  bool reported_ = false;
};

}  // namespace latchfs::fusefs
