#include "latchfs/share/posix_share.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string_view>

#include "share/publish.hpp"

namespace latchfs::share {
namespace {

constexpr mode_t kFolderMode = 0700;
constexpr int kFolderFlags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

bool is_component(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

/// "locks/0a3" -> "locks", "0a3"; "beats" -> "", "beats".
struct Split {
  std::string parent;
  std::string last;
};
Split split(const std::string& dir) {
  const std::size_t slash = dir.rfind('/');
  if (slash == std::string::npos) return {"", dir};
  return {dir.substr(0, slash), dir.substr(slash + 1)};
}

tl::unexpected<Error> failed(const char* call, const std::string& dir, const std::string& name) {
  const int err = errno;
  return fail_errno(err, fmt::format("{} {}{}{}", call, dir, dir.empty() || name.empty() ? "" : "/", name));
}

Result<void> check_name(const std::string& name) {
  if (is_component(name)) return {};
  return fail_errno(EINVAL, "'" + name + "' is no name");
}

/// One forced look at a folder: the client's idea of what is in it is checked against the server.
int force(int parent, const char* name, int flags) {
  struct statx st {};
  return retry_eintr([&] { return ::statx(parent, name, flags | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &st); });
}

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};
using DirStream = std::unique_ptr<DIR, CloseDir>;

}  // namespace

EntryForm best_entry_form(int directory) {
  struct statfs st {};
  if (retry_eintr([&] { return ::fstatfs(directory, &st); }) != 0) return EntryForm::directory;
  constexpr std::uint32_t kCifs = 0xFF534D42;
  constexpr std::uint32_t kSmb2 = 0xFE534D42;
  const auto type = static_cast<std::uint32_t>(st.f_type);
  return type == kCifs || type == kSmb2 || type == SMB_SUPER_MAGIC ? EntryForm::file : EntryForm::directory;
}

Result<UniqueFd> PosixShare::open_folder(const std::string& dir) const {
  if (!dir.empty() && dir.back() == '/') return fail_errno(EINVAL, "'" + dir + "' is no folder");
  UniqueFd at(retry_eintr([&] { return ::openat(root_.get(), ".", O_PATH | kFolderFlags); }));
  std::string_view rest = dir;
  while (at && !rest.empty()) {
    const std::string part(rest.substr(0, rest.find('/')));
    if (!is_component(part)) return fail_errno(EINVAL, "'" + dir + "' is no folder");
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    at.reset(retry_eintr([&] { return ::openat(at.get(), part.c_str(), O_PATH | kFolderFlags); }));
  }
  if (!at) return failed("open", dir, "");
  return at;
}

Result<void> PosixShare::make_entry(const std::string& dir, const std::string& name) {
  if (form_ == EntryForm::file) return make_file(dir, name);
  if (auto fine = check_name(name); !fine) return fine;
  const auto folder = open_folder(dir);
  if (!folder) return tl::unexpected(folder.error());
  // Nobody opens an entry, so a umask that takes the owner's bits too does no harm.
  if (retry_eintr([&] { return ::mkdirat(folder->get(), name.c_str(), kFolderMode); }) != 0) {
    return failed("mkdir", dir, name);
  }
  return {};
}

Result<void> PosixShare::remove_entry(const std::string& dir, const std::string& name) {
  if (auto fine = check_name(name); !fine) return fine;
  const auto folder = open_folder(dir);
  if (!folder) return tl::unexpected(folder.error());
  const auto remove = [&](int flags) {
    return retry_eintr([&] { return ::unlinkat(folder->get(), name.c_str(), flags); }) == 0;
  };
  const int own = form_ == EntryForm::directory ? AT_REMOVEDIR : 0;
  if (remove(own)) return {};
  const bool other_form = own != 0 ? errno == ENOTDIR : errno == EISDIR || errno == EPERM;
  if (other_form && remove(AT_REMOVEDIR - own)) return {};
  return failed("remove", dir, name);
}

Result<void> PosixShare::make_folder(const std::string& dir) {
  const Split path = split(dir);
  if (auto fine = check_name(path.last); !fine) return fine;
  const auto folder = open_folder(path.parent);
  if (!folder) return tl::unexpected(folder.error());
  const char* name = path.last.c_str();
  if (retry_eintr([&] { return ::mkdirat(folder->get(), name, kFolderMode); }) != 0) {
    if (errno == EEXIST) return {};
    return failed("mkdir", dir, "");
  }
  struct stat st {};
  const bool seen = ::fstatat(folder->get(), name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
  if (seen && (st.st_mode & kFolderMode) != kFolderMode) ::fchmodat(folder->get(), name, kFolderMode, 0);
  return {};
}

Result<void> PosixShare::publish_file(const std::string& dir, const std::string& name, const std::string& content) {
  return publish_numbered(dir, name, [&](std::uint64_t) { return content; });
}

Result<void> PosixShare::publish_numbered(const std::string& dir, const std::string& name, const Content& content) {
  if (auto fine = check_name(name); !fine) return fine;
  const auto folder = open_folder(dir);
  if (!folder) return tl::unexpected(folder.error());
  Result<void> linked = publish_by_link(folder->get(), name, content);
  if (linked || !is_errno(linked.error(), EOPNOTSUPP)) return linked;
  return publish_in_place(folder->get(), name, content);
}

Result<void> PosixShare::make_file(const std::string& dir, const std::string& name) {
  if (auto fine = check_name(name); !fine) return fine;
  const auto folder = open_folder(dir);
  if (!folder) return tl::unexpected(folder.error());
  const auto fd = create_exclusive(folder->get(), name);
  if (!fd) return tl::unexpected(fd.error());
  return {};
}

Result<std::string> PosixShare::read_file(const std::string& dir, const std::string& name, std::size_t limit) {
  if (auto fine = check_name(name); !fine) return tl::unexpected(fine.error());
  const auto folder = open_folder(dir);
  if (!folder) return tl::unexpected(folder.error());
  // O_NONBLOCK: a planted fifo must not hang the daemon.
  const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const UniqueFd fd(retry_eintr([&] { return ::openat(folder->get(), name.c_str(), flags); }));
  if (!fd && (errno == ELOOP || errno == ENXIO)) return fail_errno(EINVAL, dir + "/" + name + " is no regular file");
  if (!fd) return failed("open", dir, name);
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return failed("stat", dir, name);
  if (!S_ISREG(st.st_mode)) return fail_errno(EINVAL, dir + "/" + name + " is no regular file");

  std::string text;
  std::array<char, 4096> buffer{};
  while (text.size() < limit) {
    const std::size_t want = std::min(buffer.size(), limit - text.size());
    const ssize_t n = retry_eintr([&] { return ::read(fd.get(), buffer.data(), want); });
    if (n < 0) return failed("read", dir, name);
    if (n == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return text;
}

Result<void> PosixShare::rename(const std::string& dir, const std::string& from, const std::string& to) {
  if (auto fine = check_name(from); !fine) return fine;
  if (auto fine = check_name(to); !fine) return fine;
  const auto folder = open_folder(dir);
  if (!folder) return tl::unexpected(folder.error());
  const int at = folder->get();
  if (retry_eintr([&] { return ::renameat(at, from.c_str(), at, to.c_str()); }) != 0)
    return failed("rename", dir, from);
  return {};
}

Result<std::vector<std::string>> PosixShare::list(const std::string& dir, Freshness freshness) {
  for (;;) {
    auto names = list_once(dir, freshness);
    if (names || !is_errno(names.error(), EINTR)) return names;
  }
}

Result<std::vector<std::string>> PosixShare::list_once(const std::string& dir, Freshness freshness) const {
  const Split path = split(dir);
  if (!is_component(path.last)) return fail_errno(EINVAL, "'" + dir + "' is no folder");
  const auto parent = open_folder(path.parent);
  if (!parent) return tl::unexpected(parent.error());
  const auto open_it = [&] {
    const bool forced = freshness == Freshness::forced;
    if (forced && force(parent->get(), path.last.c_str(), AT_SYMLINK_NOFOLLOW) != 0) return -1;
    return retry_eintr([&] { return ::openat(parent->get(), path.last.c_str(), O_RDONLY | kFolderFlags); });
  };
  UniqueFd fd(open_it());
  // "Not there" may be a remembered answer from before another host made the folder.
  if (!fd && errno == ENOENT && force(parent->get(), "", AT_EMPTY_PATH) == 0) fd.reset(open_it());
  if (!fd) return failed("open", dir, "");
  const DirStream stream(::fdopendir(fd.get()));
  if (!stream) return failed("list", dir, "");
  (void)fd.release();

  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr && errno != 0) return failed("list", dir, "");
    if (entry == nullptr) return names;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
}

Result<FileFacts> PosixShare::facts(const std::string& dir, const std::string& name) {
  const auto folder = open_folder(dir);
  if (!folder) return tl::unexpected(folder.error());
  if (auto fine = check_name(name); !fine && !name.empty()) return tl::unexpected(fine.error());
  struct statx st {};
  const int flags = (name.empty() ? AT_EMPTY_PATH : AT_SYMLINK_NOFOLLOW) | AT_STATX_FORCE_SYNC;
  if (retry_eintr([&] { return ::statx(folder->get(), name.c_str(), flags, STATX_BASIC_STATS, &st); }) != 0) {
    return failed("stat", dir, name);
  }
  const auto changed = std::chrono::seconds(st.stx_ctime.tv_sec) + Nanos(st.stx_ctime.tv_nsec);
  return FileFacts{st.stx_ino, st.stx_uid, st.stx_mode, WallTime(changed)};
}

Result<void> PosixShare::sync_all() {
  if (retry_eintr([&] { return ::syncfs(root_.get()); }) != 0) return failed("syncfs", "", "");
  return {};
}

}  // namespace latchfs::share
