#pragma once
#include <optional>
#include <vector>

#include "latchfs/protocol/documents.hpp"
#include "latchfs/protocol/entry_name.hpp"
#include "latchfs/share/share.hpp"

/// The names of sessions as they stand on the share. All functions block on it.
namespace latchfs::engine {

/// Listings of beats/ and sessions/; names that are none of ours are left out.
Result<std::vector<protocol::BeatEntry>> list_beats(share::Share& share, share::Freshness freshness);
Result<std::vector<SessionId>> list_sessions(share::Share& share, share::Freshness freshness);

/// What one listing of beats/ says of one session.
struct Sighting {
  std::optional<BeatNumber> beat{};  ///< the highest
  bool dead = false;
  bool none() const { return !beat && !dead; }
};
Sighting find_session(const std::vector<protocol::BeatEntry>& beats, const SessionId& sid);

/// Errc::corrupt also for a file that is only half written.
Result<protocol::SessionInfo> read_session_info(share::Share& share, const SessionId& sid);

/// Turns the beat of a session into `.dead`. ENOENT: it is not that beat any more (or somebody else was first).
Result<void> rename_to_dead(share::Share& share, const SessionId& sid, BeatNumber beat);

/// Removes the inbox, then sessions/<sid>, then what is left in beats/. What is not there is no error.
Result<void> remove_session_names(share::Share& share, const SessionId& sid);

/// remove_entry() to which a missing name is fine.
Result<void> remove_if_there(share::Share& share, const std::string& dir, const std::string& name);

}  // namespace latchfs::engine
