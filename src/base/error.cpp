#include "latchfs/base/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace latchfs {
namespace {

// Kernel-internal codes (512..., 524) and nonsense must never reach a program.
constexpr int kLastErrno = 133;

std::string cause(const Error& error) {
  switch (error.code) {
    case Errc::system: return std::strerror(error.sys);
    case Errc::conflict: return "another owner holds a lock that is in the way";
    case Errc::deadlock: return "waiting would be a deadlock";
    case Errc::cancelled: return "interrupted";
    case Errc::no_locks: return "no locks can be given now";
    case Errc::lease_lost: return "the lock was lost";
    case Errc::corrupt: return "not in latchfs format";
    case Errc::refused: return "refused";
  }
  return "unknown error";
}

}  // namespace

int to_errno(const Error& error) {
  switch (error.code) {
    case Errc::system: return error.sys > 0 && error.sys <= kLastErrno ? error.sys : EIO;
    case Errc::conflict: return EAGAIN;
    case Errc::deadlock: return EDEADLK;
    case Errc::cancelled: return EINTR;
    case Errc::no_locks: return ENOLCK;
    case Errc::lease_lost: return EIO;
    case Errc::corrupt: return EIO;
    case Errc::refused: return EPERM;
  }
  return EIO;
}

std::string describe(const Error& error) {
  if (error.what.empty()) return cause(error);
  if (error.code == Errc::refused) return error.what;
  return fmt::format("{}: {}", error.what, cause(error));
}

}  // namespace latchfs
