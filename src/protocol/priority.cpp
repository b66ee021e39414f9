#include "latchfs/protocol/priority.hpp"

#include <tuple>

namespace latchfs::protocol {

bool better(const Claim& a, const Claim& b, QueuePolicy policy) {
  if (policy == QueuePolicy::writer_first && a.mode != b.mode) return a.mode == Mode::write;
  return std::tie(a.ticket, a.sid, a.seq) < std::tie(b.ticket, b.sid, b.seq);
}

}  // namespace latchfs::protocol
