#pragma once
#include <set>

#include "latchfs/base/error.hpp"
#include "latchfs/base/ids.hpp"
#include "latchfs/share/share.hpp"

namespace latchfs::engine {

/// Removes what dead sessions left: claims and waiters in every folder of locks/, inbox, session, `.dead`, in this
/// order. Others may do the same at the same time. All of them must be known to be dead. After an error the rest is
/// left for another time. Blocks on the share.
Result<void> sweep(share::Share& share, const std::set<SessionId>& dead);

}  // namespace latchfs::engine
