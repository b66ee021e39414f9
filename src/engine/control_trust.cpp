#include "engine/control_trust.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "latchfs/base/ids.hpp"
#include "latchfs/protocol/layout.hpp"

namespace latchfs::engine {
namespace {

constexpr mode_t kOnlyMe = 0700;

bool is_denial(int err) { return err == EACCES || err == EPERM || err == EROFS; }

tl::unexpected<Error> refuse(const std::string& path, const char* why) {
  return fail(Errc::refused, fmt::format("{}/{} {}", path, protocol::kControlDir, why));
}

/// A directory made in the control directory and removed again: it shows who this daemon is on this share, and whether
/// modes mean anything here.
struct Probe {
  uid_t owner = 0;
  bool modes_count = false;
};

Result<Probe> probe(int control) {
  const std::string name = "t.probe." + random_session_id().text;
  if (::mkdirat(control, name.c_str(), kOnlyMe) != 0) return fail_errno(errno, "mkdir");
  struct stat st {};
  Probe out;
  Result<Probe> result = out;
  if (::fstatat(control, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    result = fail_errno(errno, "stat");
  } else {
    out.owner = st.st_uid;
    constexpr mode_t kTelling = 0711;
    const bool set = ::fchmodat(control, name.c_str(), kTelling, 0) == 0 &&
                     ::fstatat(control, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
    out.modes_count = set && (st.st_mode & 0777) == kTelling;
    result = out;
  }
  ::unlinkat(control, name.c_str(), AT_REMOVEDIR);
  return result;
}

Result<void> make_control(int source, const std::string& path) {
  if (::mkdirat(source, protocol::kControlDir, kOnlyMe) == 0) {
    struct stat st {};
    const bool seen = ::fstatat(source, protocol::kControlDir, &st, AT_SYMLINK_NOFOLLOW) == 0;
    // Only a umask that takes the owner's own bits leaves something to mend.
    if (seen && S_ISDIR(st.st_mode) && (st.st_mode & kOnlyMe) != kOnlyMe) {
      ::fchmodat(source, protocol::kControlDir, kOnlyMe, 0);
    }
    return {};
  }
  if (errno == EEXIST) return {};
  if (is_denial(errno)) return fail(Errc::refused, fmt::format("{} is not writable", path));
  return fail_errno(errno, fmt::format("mkdir {}/{}", path, protocol::kControlDir));
}

}  // namespace

Result<UniqueFd> open_trusted_control(int source, const std::string& path) {
  if (auto made = make_control(source, path); !made) return tl::unexpected(made.error());
  struct stat st {};
  if (::fstatat(source, protocol::kControlDir, &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return fail_errno(errno, fmt::format("stat {}/{}", path, protocol::kControlDir));
  }
  if (S_ISLNK(st.st_mode)) return refuse(path, "is a symbolic link: somebody planted it, remove it");
  if (!S_ISDIR(st.st_mode)) return refuse(path, "is no directory");
  // The look above is for the message; this open is what holds.
  UniqueFd control(::openat(source, protocol::kControlDir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!control && is_denial(errno)) return refuse(path, "cannot be opened: it belongs to another user");
  if (!control) return fail_errno(errno, fmt::format("open {}/{}", path, protocol::kControlDir));
  if (::fstat(control.get(), &st) != 0) return fail_errno(errno, "stat");

  const auto found = probe(control.get());
  if (!found && is_denial(found.error().sys)) return refuse(path, "is not writable for this user");
  if (!found) return tl::unexpected(found.error());
  if (found->owner != st.st_uid)
    return refuse(path, "belongs to another user: daemons of one share must run as one user");
  if (found->modes_count && (st.st_mode & S_IWOTH) != 0)
    return refuse(path, "is writable for everybody: chmod it to 0700");
  return control;
}

}  // namespace latchfs::engine
