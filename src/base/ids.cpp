#include "latchfs/base/ids.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <cstdlib>

namespace latchfs {

SessionId random_session_id() {
  std::array<unsigned char, 10> bytes{};
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::getrandom(bytes.data() + have, bytes.size() - have, 0);
    // A request of at most 256 bytes fails only by EINTR before the pool is ready; without randomness ids could repeat.
    if (got < 0 && errno != EINTR) std::abort();
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  SessionId id;
  for (unsigned char b : bytes) id.text += fmt::format("{:02x}", b);
  return id;
}

}  // namespace latchfs
