#pragma once
#include <optional>
#include <string>

#include "latchfs/protocol/documents.hpp"
#include "latchfs/share/posix_share.hpp"

namespace latchfs::engine {

/// Reads the share's format, or publishes the first one (`wanted` or the default times). Other times than the share's
/// are taken only while no session can be live. `path` is SOURCE, for messages; `own` this daemon. Blocks on the share.
Result<protocol::FormatDocument> agree_on_format(share::PosixShare& share, const std::string& path,
                                                 const std::optional<protocol::LeaseTimes>& wanted,
                                                 const protocol::SessionInfo& own);

}  // namespace latchfs::engine
