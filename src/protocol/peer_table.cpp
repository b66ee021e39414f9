#include "latchfs/protocol/peer_table.hpp"

#include <algorithm>

namespace latchfs::protocol {
namespace {

/// What one listing of beats/ says of one session.
struct Sighting {
  std::optional<BeatNumber> beat{};
  bool dead = false;
};

std::unordered_map<SessionId, Sighting> by_session(const std::vector<BeatEntry>& beats) {
  std::unordered_map<SessionId, Sighting> seen;
  for (const BeatEntry& entry : beats) {
    Sighting& s = seen[entry.sid];
    if (!entry.beat) s.dead = true;
    // A beat renamed while the folder was read can show under both names: the higher is the later one.
    if (entry.beat && (!s.beat || *s.beat < *entry.beat)) s.beat = entry.beat;
  }
  return seen;
}

}  // namespace

void PeerTable::feed_beats(const std::vector<BeatEntry>& beats, ObserveTime ended) {
  Nanos counted{0};
  if (last_listing_ && ended > *last_listing_) counted = std::min(ended - *last_listing_, longest_counted_gap(times_));
  last_listing_ = last_listing_ ? std::max(*last_listing_, ended) : ended;

  // Time counts for those that do not show as well: if they show again under the same number, they did not beat
  // meanwhile.
  for (auto& [sid, peer] : peers_) {
    peer.shown = false;
    peer.unchanged += counted;
  }
  for (const auto& [sid, sighting] : by_session(beats)) {
    if (sid == self_) continue;
    Peer& peer = peers_[sid];
    peer.shown = true;
    peer.dead = peer.dead || sighting.dead;
    // A lower number is a change too (a share put back to an older state): only that name can be broken now.
    if (sighting.beat && peer.beat != sighting.beat) {
      peer.beat = sighting.beat;
      peer.unchanged = Nanos{0};
    }
  }
}

void PeerTable::feed_sessions(const std::vector<SessionId>& present) {
  const std::unordered_set<SessionId> here(present.begin(), present.end());
  for (const SessionId& sid : here) {
    if (sid != self_ && gone_.count(sid) == 0) peers_[sid].registered = true;
  }
  for (auto it = peers_.begin(); it != peers_.end();) {
    const auto& [sid, peer] = *it;
    const bool opening = peer.shown && !peer.registered && !peer.dead;
    if (here.count(sid) != 0 || opening) {
      ++it;
      continue;
    }
    gone_.insert(sid);
    // A name that is left in beats/ still has to be broken or swept.
    it = peer.shown ? std::next(it) : peers_.erase(it);
  }
}

bool PeerTable::wants_sessions() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const auto& p) { return !p.second.registered || !p.second.shown || p.second.dead; });
}

void PeerTable::set_self(SessionId self) {
  self_ = std::move(self);
  peers_.erase(self_);
}

void PeerTable::mark_dead(const SessionId& sid) {
  if (sid == self_) return;
  peers_[sid].dead = true;
}

std::vector<PeerTable::Stale> PeerTable::breakable() const {
  std::vector<Stale> stale;
  for (const auto& [sid, peer] : peers_) {
    if (peer.dead || !peer.shown || !peer.beat || peer.unchanged < times_.break_after) continue;
    stale.push_back({sid, *peer.beat});
  }
  return stale;
}

std::vector<SessionId> PeerTable::dead() const {
  std::vector<SessionId> out;
  for (const auto& [sid, peer] : peers_) {
    if (peer.dead) out.push_back(sid);
  }
  return out;
}

bool PeerTable::is_void(const SessionId& sid) const {
  const auto it = peers_.find(sid);
  return gone_.count(sid) != 0 || (it != peers_.end() && it->second.dead);
}

bool PeerTable::is_known(const SessionId& sid) const { return peers_.count(sid) != 0 && !is_void(sid); }

bool PeerTable::is_late(const SessionId& sid) const {
  const auto it = peers_.find(sid);
  return it != peers_.end() && it->second.beat && it->second.unchanged >= late_after(times_);
}

std::optional<BeatNumber> PeerTable::last_beat(const SessionId& sid) const {
  const auto it = peers_.find(sid);
  if (it == peers_.end() || it->second.dead) return std::nullopt;
  return it->second.beat;
}

std::vector<SessionId> PeerTable::live() const {
  std::vector<SessionId> out;
  for (const auto& [sid, peer] : peers_) {
    if (!is_void(sid)) out.push_back(sid);
  }
  return out;
}

}  // namespace latchfs::protocol
