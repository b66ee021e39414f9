#include "engine/peer_watch.hpp"

#include <utility>

#include "engine/session_names.hpp"

namespace latchfs::engine {

void PeerWatch::set_self(const SessionId& sid) {
  const std::lock_guard lock(mutex_);
  table_.set_self(sid);
}

void PeerWatch::mark_dead(const SessionId& sid) {
  const std::lock_guard lock(mutex_);
  const auto before = table_.live();
  table_.mark_dead(sid);
  note_deaths(before);
}

void PeerWatch::note_deaths(const std::vector<SessionId>& live_before) {
  for (const SessionId& sid : live_before) {
    if (table_.is_void(sid)) deaths_.push_back(sid);
  }
}

PeerWatch::Stamp PeerWatch::stamp() const {
  const std::lock_guard lock(mutex_);
  return taken_;
}

template <class Feed>
bool PeerWatch::take_in(Stamp stamp, Feed feed) {
  const std::lock_guard lock(mutex_);
  if (stamp != taken_) return false;
  ++taken_;
  const auto before = table_.live();
  feed();
  note_deaths(before);
  return true;
}

Result<std::vector<protocol::BeatEntry>> PeerWatch::look_at_beats(share::Share& share, share::Freshness freshness) {
  const Stamp began = stamp();
  auto beats = list_beats(share, freshness);
  if (beats) take_in(began, [&] { table_.feed_beats(*beats, clock_.observe_now()); });
  return beats;
}

Result<std::vector<SessionId>> PeerWatch::look_at_sessions(share::Share& share, share::Freshness freshness) {
  const Stamp began = stamp();
  auto sessions = list_sessions(share, freshness);
  if (sessions) take_in(began, [&] { table_.feed_sessions(*sessions); });
  return sessions;
}

Result<bool> PeerWatch::learn_once(share::Share& share) {
  const Stamp first = stamp();
  const auto beats = list_beats(share, share::Freshness::forced);
  if (!beats) return tl::unexpected(beats.error());
  if (!take_in(first, [&] { table_.feed_beats(*beats, clock_.observe_now()); })) return false;
  const Stamp second = stamp();
  const auto sessions = list_sessions(share, share::Freshness::forced);
  if (!sessions) return tl::unexpected(sessions.error());
  return take_in(second, [&] { table_.feed_sessions(*sessions); });
}

Result<void> PeerWatch::learn(share::Share& share) {
  // Gives the place of the one who lists free again on every way out, an exception too.
  struct Place {
    PeerWatch& watch;
    ~Place() {
      const std::lock_guard lock(watch.mutex_);
      watch.learning_ = false;
      watch.learnt_.notify_all();
    }
  };

  std::unique_lock lock(mutex_);
  const std::uint64_t mine = ++asked_;
  while (answered_ < mine) {
    learnt_.wait(lock, [&] { return !learning_ || answered_ >= mine || closed_; });
    if (closed_) return fail(Errc::cancelled, "the session has ended");
    if (answered_ >= mine) break;
    learning_ = true;
    const std::uint64_t serves = asked_;
    lock.unlock();
    Result<bool> taken = false;
    {
      const Place place{*this};
      taken = learn_once(share);
    }
    if (!taken) return tl::unexpected(taken.error());
    lock.lock();
    if (*taken && answered_ < serves) answered_ = serves;
  }
  return {};
}

void PeerWatch::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  learnt_.notify_all();
}

bool PeerWatch::wants_sessions() const {
  const std::lock_guard lock(mutex_);
  return table_.wants_sessions();
}

std::vector<protocol::PeerTable::Stale> PeerWatch::breakable() const {
  const std::lock_guard lock(mutex_);
  return table_.breakable();
}

std::vector<SessionId> PeerWatch::dead() const {
  const std::lock_guard lock(mutex_);
  return table_.dead();
}

std::vector<SessionId> PeerWatch::live() const {
  const std::lock_guard lock(mutex_);
  return table_.live();
}

bool PeerWatch::is_void(const SessionId& sid) const {
  const std::lock_guard lock(mutex_);
  return table_.is_void(sid);
}

bool PeerWatch::is_known(const SessionId& sid) const {
  const std::lock_guard lock(mutex_);
  return table_.is_known(sid);
}

bool PeerWatch::is_late(const SessionId& sid) const {
  const std::lock_guard lock(mutex_);
  return table_.is_late(sid);
}

bool PeerWatch::has_deaths() const {
  const std::lock_guard lock(mutex_);
  return !deaths_.empty();
}

std::vector<SessionId> PeerWatch::take_deaths() {
  const std::lock_guard lock(mutex_);
  return std::exchange(deaths_, {});
}

}  // namespace latchfs::engine
