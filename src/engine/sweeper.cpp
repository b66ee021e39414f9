#include "engine/sweeper.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <variant>

#include "engine/session_names.hpp"
#include "latchfs/protocol/layout.hpp"

namespace latchfs::engine {
namespace {

using protocol::LockEntry;
using share::Freshness;

bool is_lock_folder(const std::string& name) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return name.size() == 3 && std::all_of(name.begin(), name.end(), is_hex);
}

/// A session may be dead though its beat still stands: one of ours that the share forgot, or one that never opened
/// whole. The names of such a one are void only when it has `.dead`.
Result<void> end_beats(share::Share& share, const std::set<SessionId>& dead) {
  const auto beats = list_beats(share, Freshness::forced);
  if (!beats) return tl::unexpected(beats.error());
  for (const SessionId& sid : dead) {
    const Sighting seen = find_session(*beats, sid);
    if (!seen.beat || seen.dead) continue;
    const auto ended = rename_to_dead(share, sid, *seen.beat);
    if (!ended && !is_errno(ended.error(), ENOENT)) return ended;
  }
  return {};
}

Result<void> sweep_folder(share::Share& share, const std::string& folder, const std::set<SessionId>& dead) {
  const auto names = share.list(folder, Freshness::forced);
  if (!names && is_errno(names.error(), ENOENT)) return {};
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names) {
    const protocol::LockName parsed = protocol::parse_lock_name(name);
    const auto* entry = std::get_if<LockEntry>(&parsed);
    if (entry == nullptr || dead.count(entry->claim.sid) == 0) continue;
    if (auto gone = remove_if_there(share, folder, name); !gone) return gone;
  }
  return {};
}

}  // namespace

Result<void> sweep(share::Share& share, const std::set<SessionId>& dead) {
  if (auto ended = end_beats(share, dead); !ended) return ended;
  const auto folders = share.list(protocol::kLocks, Freshness::forced);
  if (!folders) return tl::unexpected(folders.error());
  for (const std::string& folder : *folders) {
    if (!is_lock_folder(folder)) continue;
    if (auto swept = sweep_folder(share, std::string(protocol::kLocks) + "/" + folder, dead); !swept) return swept;
  }
  for (const SessionId& sid : dead) {
    if (auto gone = remove_session_names(share, sid); !gone) return gone;
  }
  return {};
}

}  // namespace latchfs::engine
