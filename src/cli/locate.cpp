#include "cli/locate.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <libmount/libmount.h>

#include <cerrno>
#include <filesystem>
#include <optional>

#include "latchfs/protocol/layout.hpp"
#include "latchfs/share/posix_share.hpp"

namespace latchfs::cli {
namespace {

constexpr std::string_view kMountType = "fuse.latchfs";

struct FreeTable {
  void operator()(libmnt_table* table) const { mnt_unref_table(table); }
};
struct FreeIterator {
  void operator()(libmnt_iter* iterator) const { mnt_free_iter(iterator); }
};

bool lies_in(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.substr(0, directory.size()) == directory &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

// The source of the mount that an absolute path lies in, if that is a latchfs mount.
std::optional<std::string> latchfs_source(libmnt_table* table, std::string_view path) {
  const std::unique_ptr<libmnt_iter, FreeIterator> iterator(mnt_new_iter(MNT_ITER_FORWARD));
  libmnt_fs* mount = nullptr;
  libmnt_fs* best = nullptr;
  std::size_t longest = 0;
  while (mnt_table_next_fs(table, iterator.get(), &mount) == 0) {
    const char* target = mnt_fs_get_target(mount);
    if (target == nullptr || !lies_in(path, target)) continue;
    const std::size_t length = std::string_view(target).size();
    if (length < longest) continue;  // of several on one directory the last one is on top
    longest = length;
    best = mount;
  }
  if (best == nullptr) return std::nullopt;
  const char* type = mnt_fs_get_fstype(best);
  const char* source = mnt_fs_get_source(best);
  if (type == nullptr || source == nullptr || type != kMountType) return std::nullopt;
  return std::string(source);
}

std::string without_end_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

Result<std::string> find_source(const std::string& path) {
  const std::unique_ptr<libmnt_table, FreeTable> table(mnt_new_table_from_file("/proc/self/mountinfo"));
  if (!table) return fail_errno(errno != 0 ? errno : EIO, "/proc/self/mountinfo");
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return fail_errno(error.value(), path);
  const std::string plain = without_end_slash(absolute.lexically_normal().string());
  if (auto source = latchfs_source(table.get(), plain)) return *source;
  const std::filesystem::path real = std::filesystem::canonical(plain, error);
  if (error) return fail_errno(error.value(), path);
  if (auto source = latchfs_source(table.get(), real.string())) return *source;
  return real.string();
}

Result<std::unique_ptr<share::Share>> open_control(const std::string& source) {
  const std::string path = fmt::format("{}/{}", source, protocol::kControlDir);
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return fail_errno(errno, path);
  return std::make_unique<share::PosixShare>(std::move(fd), share::EntryForm::directory);
}

}  // namespace latchfs::cli
