#include "latchfs/engine/control_dir.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "engine/control_trust.hpp"
#include "engine/format_file.hpp"
#include "engine/mount_table.hpp"
#include "engine/session_info_local.hpp"
#include "latchfs/protocol/layout.hpp"
#include "latchfs/share/posix_share.hpp"

namespace latchfs::engine {
namespace {

constexpr const char* kReadme =
    "This directory belongs to latchfs, which makes file locks hold across the hosts that use this share.\n"
    "Its names say which host holds which lock. Do not change, move or copy anything in it while a latchfs\n"
    "daemon runs on any host. To look at it: latchctl sessions DIR, latchctl locks DIR. When no daemon runs\n"
    "anywhere, it may be removed as a whole.\n";

Result<UniqueFd> open_directory(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) return fd;
  if (errno == ENOTDIR || errno == ENOENT) return fail(Errc::refused, path + " is no directory");
  if (errno == EACCES) return fail(Errc::refused, path + " cannot be read by this user");
  return fail_errno(errno, "open " + path);
}

UniqueFd parent_of(const UniqueFd& at) { return UniqueFd(::openat(at.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC)); }

bool same_directory(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

/// `.latchfs/format` in the directory `at`. One that cannot be looked at counts: it may be there.
bool has_format(int at) {
  struct stat st {};
  if (::fstatat(at, protocol::kControlDir, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode)) return false;
  const std::string path = fmt::format("{}/{}", protocol::kControlDir, protocol::kFormatFile);
  return ::fstatat(at, path.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 || errno == EACCES;
}

Result<void> check_parents(const UniqueFd& source, const struct stat& source_stat, const std::string& path) {
  struct stat below = source_stat;
  for (UniqueFd at = parent_of(source); at; at = parent_of(at)) {
    struct stat st {};
    if (::fstat(at.get(), &st) != 0) return fail_errno(errno, "stat a parent of " + path);
    // Another file system above, or the root, which is its own parent.
    if (st.st_dev != below.st_dev || same_directory(st, below)) return {};
    if (has_format(at.get())) {
      return fail(Errc::refused, path + " lies inside another latchfs share: all hosts must mount the same directory");
    }
    below = st;
  }
  // What cannot be searched upward (a parent without rights) cannot be judged, and was not made with this user's
  // rights.
  return {};
}

Result<void> check_place(const UniqueFd& fd, const std::string& source) {
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return fail_errno(errno, "stat " + source);
  std::ifstream mounts("/proc/self/mountinfo");
  if (mounted_type(mounts, major(st.st_dev), minor(st.st_dev)) == "fuse.latchfs") {
    return fail(Errc::refused, source + " lies on a latchfs mount: name the directory below that mount");
  }
  return check_parents(fd, st, source);
}

Result<void> check_writable(const UniqueFd& fd, const std::string& source) {
  if (::faccessat(fd.get(), ".", W_OK | X_OK, AT_EACCESS) == 0) return {};
  if (errno == EACCES || errno == EPERM || errno == EROFS) return fail(Errc::refused, source + " is not writable");
  return fail_errno(errno, "access " + source);
}

/// The daemon would wait for itself on the way to its own source.
Result<void> check_mountpoint(const UniqueFd& source_fd, const std::string& source, const std::string& mountpoint) {
  auto at = open_directory(mountpoint);
  if (!at) return tl::unexpected(at.error());
  struct stat source_stat {
  }, below{};
  if (::fstat(source_fd.get(), &source_stat) != 0) return fail_errno(errno, "stat " + source);
  for (bool first = true; *at; *at = parent_of(*at), first = false) {
    struct stat st {};
    if (::fstat(at->get(), &st) != 0) return fail_errno(errno, "stat a parent of " + mountpoint);
    if (same_directory(st, source_stat)) {
      const char* how = first ? "is" : "lies inside";
      return fail(Errc::refused,
                  fmt::format("the mount point {} {} the source {}: use another directory", mountpoint, how, source));
    }
    if (!first && same_directory(st, below)) return {};
    below = st;
  }
  return {};
}

protocol::LeaseTimes to_milliseconds(const protocol::LeaseTimes& times) {
  const auto round = [](Nanos n) { return Nanos(std::chrono::duration_cast<std::chrono::milliseconds>(n)); };
  return {round(times.beat), round(times.fence_after), round(times.break_after)};
}

/// Folders and README; `format` comes last, since it says that the rest is there.
Result<void> make_layout(share::Share& share) {
  for (const char* folder : {protocol::kSessions, protocol::kBeats, protocol::kInbox, protocol::kLocks}) {
    if (auto made = share.make_folder(folder); !made) return made;
    // What was there before may be a link to somewhere else.
    if (auto facts = share.facts(folder, ""); !facts) return tl::unexpected(facts.error());
  }
  if (share.facts("", protocol::kReadmeFile)) return {};
  auto written = share.publish_file("", protocol::kReadmeFile, kReadme);
  if (!written && is_errno(written.error(), EEXIST)) return {};
  return written;
}

}  // namespace

Result<void> check_source(const std::string& source, const std::string& mountpoint, bool read_only) {
  const auto fd = open_directory(source);
  if (!fd) return tl::unexpected(fd.error());
  if (auto fine = check_place(*fd, source); !fine) return fine;
  if (auto fine = check_mountpoint(*fd, source, mountpoint); !fine) return fine;
  if (read_only) return {};
  return check_writable(*fd, source);
}

Result<ControlDir> open_control_dir(const std::string& source, const std::optional<protocol::LeaseTimes>& wanted) {
  std::optional<protocol::LeaseTimes> times;
  if (wanted) times = to_milliseconds(*wanted);
  if (times) {
    if (auto fine = protocol::check(*times); !fine) return tl::unexpected(fine.error());
  }
  const auto fd = open_directory(source);
  if (!fd) return tl::unexpected(fd.error());
  if (auto fine = check_place(*fd, source); !fine) return tl::unexpected(fine.error());
  if (auto fine = check_writable(*fd, source); !fine) return tl::unexpected(fine.error());
  auto control = open_trusted_control(fd->get(), source);
  if (!control) return tl::unexpected(control.error());

  const share::EntryForm form = share::best_entry_form(control->get());
  auto share = std::make_unique<share::PosixShare>(std::move(*control), form);
  if (auto made = make_layout(*share); !made) return tl::unexpected(made.error());
  auto format = agree_on_format(*share, source, times, local_session_info(system_clock(), "", ""));
  if (!format) return tl::unexpected(format.error());
  return ControlDir{std::move(share), std::move(*format)};
}

}  // namespace latchfs::engine
