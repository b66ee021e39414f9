#pragma once
#include <memory>
#include <optional>
#include <string>

#include "latchfs/base/error.hpp"
#include "latchfs/protocol/documents.hpp"
#include "latchfs/protocol/lease_times.hpp"
#include "latchfs/share/share.hpp"

namespace latchfs::engine {

/// A control directory that was checked and may be used.
struct ControlDir {
  std::unique_ptr<share::Share> share;
  protocol::FormatDocument format;
};

/// Refuses (Errc::refused, one clear sentence) a SOURCE that cannot be one: no directory; not writable (unless `read_only`); on a
/// latchfs mount; below a directory of the same file system that has `.latchfs/format`. Refuses a MOUNTPOINT that is SOURCE or lies in
/// it. Needs no control directory. Any thread; blocks on the share.
Result<void> check_source(const std::string& source, const std::string& mountpoint, bool read_only);

/// Makes `.latchfs` in SOURCE where it is missing (two daemons may race) and checks it: no symbolic link, not foreign-owned, not
/// world-writable, a readable format, its own inode number as recorded. A first mount writes `wanted` (or the defaults) into format; later ones
/// adopt what is there, and are refused when they ask for other times while the share has live sessions (with none, the old format gives
/// way). Any thread; blocks on the share.
Result<ControlDir> open_control_dir(const std::string& source, const std::optional<protocol::LeaseTimes>& wanted);

}  // namespace latchfs::engine
