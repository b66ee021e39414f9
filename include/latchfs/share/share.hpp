#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "latchfs/base/clock.hpp"
#include "latchfs/base/error.hpp"

namespace latchfs::share {

/// What an entry that is only a name is made of. Either kind is read and removed by everyone.
enum class EntryForm { directory, file };

/// How a listing is made sure to be fresh: after a completed own change in that folder a new opendir is fresh by itself; without
/// one a forced statx of the folder comes first (measured on NFSv3, v4.x and SMB: 0 stale listings of either kind).
enum class Freshness { own_change, forced };

struct FileFacts {
  std::uint64_t inode = 0;
  std::uint64_t owner = 0;
  std::uint32_t mode = 0;           ///< st_mode
  WallTime changed{};               ///< ctime by the server's clock
};

/// The only door to the control directory. `dir` is a path of at most two fixed components below it ("beats", "locks/0a3"); `name` has no slash.
/// Nothing follows symbolic links. Each call may block for minutes on a hard mount and must be made from a thread that may.
/// Errors are Errc::system with the share's errno; an error on a change can mean "done, but the reply was lost": the caller decides
/// that by a fresh listing. All functions: any thread.
class Share {
 public:
  virtual ~Share() = default;

  /// Makes the empty entry `dir/name`, atomically at the server; EEXIST if the name is there.
  virtual Result<void> make_entry(const std::string& dir, const std::string& name) = 0;
  /// Removes an entry of either form. ENOENT if it is not there.
  virtual Result<void> remove_entry(const std::string& dir, const std::string& name) = 0;
  /// Makes the folder `dir` with mode 0700; it is no error when it is there already.
  virtual Result<void> make_folder(const std::string& dir) = 0;
  /// Writes a new file 0600 that never shows half its content under `dir/name` where the share has hard links (a temporary name is linked),
  /// else by exclusive create. EEXIST if the name is there.
  virtual Result<void> publish_file(const std::string& dir, const std::string& name, const std::string& content) = 0;
  /// Creates the empty file `dir/name` exclusively (beats are files: they are renamed). EEXIST if the name is there.
  virtual Result<void> make_file(const std::string& dir, const std::string& name) = 0;
  /// The first `limit` bytes of a regular file. EINVAL when it is something else.
  virtual Result<std::string> read_file(const std::string& dir, const std::string& name, std::size_t limit) = 0;
  /// rename(2) without flags in one folder: exactly one of several callers with the same `from` wins, the others get ENOENT.
  virtual Result<void> rename(const std::string& dir, const std::string& from, const std::string& to) = 0;
  /// All names by a new opendir, without "." and ".."; not atomic. ENOENT if the folder is not there.
  virtual Result<std::vector<std::string>> list(const std::string& dir, Freshness freshness) = 0;
  /// Facts of `dir/name` itself, forced from the server. An empty name means the folder.
  virtual Result<FileFacts> facts(const std::string& dir, const std::string& name) = 0;
  /// syncfs(2) of the share: all dirty pages of this host are on the server afterwards.
  virtual Result<void> sync_all() = 0;
};

}  // namespace latchfs::share
