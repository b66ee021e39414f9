#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "latchfs/base/clock.hpp"
#include "latchfs/protocol/peer_table.hpp"
#include "latchfs/share/share.hpp"

namespace latchfs::engine {

/// The peer table, shared by the threads that list and those that ask. A listing is taken only if no other was taken
/// since it began: one that is older than what is known could make a session that opened meanwhile look gone. Any
/// thread.
class PeerWatch {
 public:
  PeerWatch(const Clock& clock, protocol::LeaseTimes times) : clock_(clock), table_(SessionId{}, times) {}

  void set_self(const SessionId& sid);
  void mark_dead(const SessionId& sid);

  /// Lists beats/ and takes it in. The listing is given back also where it came too late to be taken.
  Result<std::vector<protocol::BeatEntry>> look_at_beats(share::Share& share, share::Freshness freshness);
  Result<std::vector<SessionId>> look_at_sessions(share::Share& share, share::Freshness freshness);
  /// Both, afresh: what is known afterwards speaks of a moment after the call began. Callers at one time share the
  /// listings.
  Result<void> learn(share::Share& share);
  /// Lets nobody wait in learn() any more.
  void close();

  bool wants_sessions() const;
  std::vector<protocol::PeerTable::Stale> breakable() const;
  std::vector<SessionId> dead() const;
  std::vector<SessionId> live() const;
  bool is_void(const SessionId& sid) const;
  bool is_known(const SessionId& sid) const;
  bool is_late(const SessionId& sid) const;

  bool has_deaths() const;
  /// The peers that turned out dead since the last call.
  std::vector<SessionId> take_deaths();

 private:
  using Stamp = std::uint64_t;
  Stamp stamp() const;
  template <class Feed>
  bool take_in(Stamp stamp, Feed feed);
  Result<bool> learn_once(share::Share& share);
  void note_deaths(const std::vector<SessionId>& live_before);

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable learnt_;
  protocol::PeerTable table_;
  Stamp taken_ = 0;  ///< how many listings were taken in
  std::vector<SessionId> deaths_{};
  std::uint64_t asked_ = 0;     ///< calls of learn() so far
  std::uint64_t answered_ = 0;  ///< the calls up to this one are answered
  bool learning_ = false;
  bool closed_ = false;
};

}  // namespace latchfs::engine
