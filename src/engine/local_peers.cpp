#include "engine/local_peers.hpp"

#include <algorithm>

#include "engine/peer_watch.hpp"
#include "engine/session_info_local.hpp"
#include "engine/session_names.hpp"

namespace latchfs::engine {
namespace {

// A file that is still being written becomes readable soon; one that never does gives no proof and is left alone.
constexpr int kReadAttempts = 5;

}  // namespace

void LocalPeers::read_infos(share::Share& share, const std::vector<SessionId>& live) {
  std::vector<SessionId> wanted;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = known_.begin(); it != known_.end();) {
      const bool lives = std::find(live.begin(), live.end(), it->first) != live.end();
      it = lives ? std::next(it) : known_.erase(it);
    }
    for (const SessionId& sid : live) {
      const Known& known = known_[sid];
      if (!known.read && known.failures < kReadAttempts) wanted.push_back(sid);
    }
  }
  for (const SessionId& sid : wanted) {
    auto info = read_session_info(share, sid);
    const std::lock_guard lock(mutex_);
    Known& known = known_[sid];
    known.read = info.has_value();
    if (info) known.info = std::move(*info);
    if (!info) ++known.failures;
  }
}

std::vector<SessionId> LocalPeers::gone() const {
  const std::lock_guard lock(mutex_);
  std::vector<SessionId> out;
  for (const auto& [sid, known] : known_) {
    if (known.read && process_is_gone(own_, known.info)) out.push_back(sid);
  }
  return out;
}

void LocalPeers::break_gone(share::Share& share, PeerWatch& peers, EventSink& events) {
  const std::vector<SessionId> dead = gone();
  if (dead.empty()) return;
  // The dead daemon's last writes lie in this kernel still; after the break another host may read.
  if (const auto synced = share.sync_all(); !synced) {
    events.log(Level::warning, "cannot break sessions of ended daemons of this host: {}", describe(synced.error()));
    return;
  }
  const auto beats = list_beats(share, share::Freshness::forced);
  if (!beats) return;
  for (const SessionId& sid : dead) {
    const Sighting seen = find_session(*beats, sid);
    if (!seen.beat || seen.dead || !rename_to_dead(share, sid, *seen.beat)) continue;
    peers.mark_dead(sid);
    events.log(Level::info, "session {} was broken: its daemon on this host has ended", sid.text);
  }
}

std::string LocalPeers::name_of(const SessionId& sid) const {
  const std::lock_guard lock(mutex_);
  const auto it = known_.find(sid);
  return it != known_.end() && !it->second.info.host.empty() ? it->second.info.host : sid.text;
}

}  // namespace latchfs::engine
