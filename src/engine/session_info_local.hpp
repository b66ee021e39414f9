#pragma once
#include <string>

#include "latchfs/base/clock.hpp"
#include "latchfs/protocol/documents.hpp"

/// What this host can say of its own processes.
namespace latchfs::engine {

/// The session information of this process. What the kernel will not tell stays unknown. Any thread.
protocol::SessionInfo local_session_info(const Clock& clock, const std::string& host_id, const std::string& mountpoint);

/// Proof that the daemon behind `peer` lives no more: written in this boot and pid namespace, and the pid is gone or
/// has another start time. False where anything is unknown. Any thread.
bool process_is_gone(const protocol::SessionInfo& own, const protocol::SessionInfo& peer);

}  // namespace latchfs::engine
