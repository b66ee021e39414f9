#pragma once
#include <fcntl.h>
#include <sys/file.h>

#include <optional>

#include "latchfs/base/byte_range.hpp"
#include "latchfs/engine/lock_service.hpp"
#include "latchfs/protocol/entry_name.hpp"

/// Between the lock words of fcntl and flock, as libfuse hands them over, and those of the lock service.
namespace latchfs::fusefs {

/// What a program asks for; without a mode: to unlock.
using WantedMode = std::optional<protocol::Mode>;

/// libfuse gives absolute offsets, and length 0 for "to the end of the file". Empty for one that no kernel sends.
inline std::optional<ByteRange> range_of(const struct flock& lock) {
  if (lock.l_start < 0 || lock.l_len < 0) return std::nullopt;
  ByteRange range;
  range.first = static_cast<std::uint64_t>(lock.l_start);
  range.last = lock.l_len == 0 ? ByteRange::kMax : range.first + static_cast<std::uint64_t>(lock.l_len) - 1;
  return range.valid() ? std::optional(range) : std::nullopt;
}

inline WantedMode mode_of(const struct flock& lock) {
  if (lock.l_type == F_UNLCK) return std::nullopt;
  return lock.l_type == F_WRLCK ? protocol::Mode::write : protocol::Mode::read;
}

inline WantedMode mode_of_flock(int op) {
  if ((op & LOCK_UN) != 0) return std::nullopt;
  return (op & LOCK_EX) != 0 ? protocol::Mode::write : protocol::Mode::read;
}
inline bool flock_waits(int op) { return (op & LOCK_NB) == 0; }

/// The answer to F_GETLK.
inline struct flock to_flock(const std::optional<engine::Blocker>& blocker) {
  struct flock lock {};
  lock.l_type = F_UNLCK;
  lock.l_whence = SEEK_SET;
  if (!blocker) return lock;
  lock.l_type = blocker->mode == protocol::Mode::write ? F_WRLCK : F_RDLCK;
  lock.l_start = static_cast<off_t>(blocker->range.first);
  lock.l_len =
      blocker->range.last == ByteRange::kMax ? 0 : static_cast<off_t>(blocker->range.last - blocker->range.first + 1);
  // The kernel turns a number that is no process here into 0; a remote one could by chance be a process here.
  lock.l_pid = static_cast<pid_t>(blocker->pid);
  return lock;
}

}  // namespace latchfs::fusefs
