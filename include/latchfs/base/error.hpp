#pragma once
#include <string>
#include <tl/expected.hpp>

namespace latchfs {

/// What went wrong, in the project's own terms. Anything the kernel said is `system` with its errno.
enum class Errc {
  system,       ///< a system call failed; Error::sys says how
  conflict,     ///< another owner holds a lock that is in the way
  deadlock,     ///< waiting would close a cycle of waiters
  cancelled,    ///< the caller was interrupted
  no_locks,     ///< locks cannot be given now (share refuses names, no session, limit reached)
  lease_lost,   ///< the lock behind this handle was lost
  corrupt,      ///< something on the share does not follow the format
  refused,      ///< a rule of latchfs forbids it; Error::what says which
};

struct Error {
  Errc code = Errc::system;
  int sys = 0;           ///< errno where code is `system`
  std::string what{};    ///< context for a human; may be empty
};

template <class T = void>
using Result = tl::expected<T, Error>;

/// The one place where an Error becomes an errno that a program sees. Never 0, never above 133. Any thread.
int to_errno(const Error& error);

/// One line for a human: context and cause. Any thread.
std::string describe(const Error& error);

/// An Error from an errno value.
inline tl::unexpected<Error> fail_errno(int err, std::string what = {}) {
  return tl::unexpected<Error>(Error{Errc::system, err, std::move(what)});
}
inline tl::unexpected<Error> fail(Errc code, std::string what = {}) {
  return tl::unexpected<Error>(Error{code, 0, std::move(what)});
}
/// True for a `system` error with this errno.
inline bool is_errno(const Error& error, int err) { return error.code == Errc::system && error.sys == err; }

}  // namespace latchfs
