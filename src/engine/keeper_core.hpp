#pragma once
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "engine/guarded_share.hpp"
#include "engine/local_peers.hpp"
#include "engine/membership.hpp"
#include "engine/peer_watch.hpp"
#include "engine/share_time.hpp"
#include "latchfs/engine/session_keeper.hpp"

namespace latchfs::engine {

/// What the keeper's threads do, and the state they share. Kept alive by each of them, so that a thread which hangs in
/// a share call can be left behind. Everything outside (share, clock, events, lease, listener) is touched only while
/// the thread's gate is open.
class KeeperCore {
 public:
  using Steady = std::chrono::steady_clock;

  KeeperCore(share::Share& share, const Clock& clock, EventSink& events, Lease& lease, protocol::LeaseTimes times,
             const SessionKeeper::Identity& identity);

  /// Before the threads: breaks what is proved dead, then opens the first session.
  Result<void> begin(SessionListener& listener);
  /// The bodies of lfs-beat and lfs-sweep.
  void run_beat();
  void run_sweep();
  /// Asks the threads to end; the session is closed until `deadline` if the share lets it.
  void ask_to_stop(Steady::time_point deadline);

  Result<void> learn();
  void disown();
  std::optional<SessionId> current() const;
  bool ended_cleanly() const;

  Gate& beat_gate() { return beat_gate_; }
  Gate& sweep_gate() { return sweep_gate_; }
  Gate& call_gate() { return call_gate_; }
  PeerWatch& peers() { return peers_; }
  ShareTime& share_time() { return share_time_; }
  const Lease& lease() const { return lease_; }

 private:
  void beat_loop();
  void sweep_loop();
  bool wait_until(Steady::time_point when);
  bool stopping() const;
  bool disowned() const;
  Nanos retry_interval() const;

  Result<void> open_session();
  Result<void> first_beat(Membership& member, Membership::Beat& beat);
  Result<void> check_times();
  bool confirm(LeaseTime began, const SessionId& sid);
  bool rejoin();
  bool beat_once();
  void note_trouble(const std::string& why);
  void lose(const Membership::Beat& beat);
  void look_around();
  void break_stale(const std::vector<protocol::BeatEntry>& beats);
  void announce_deaths();
  void measure(const Membership& member, const Membership::Beat& beat);
  void close_session();

  void leave_to_sweep(const SessionId& sid);
  void poke_sweep();
  void sweep_round();

  const Clock& clock_;
  EventSink& events_;
  Lease& lease_;
  const protocol::LeaseTimes times_;
  const SessionKeeper::Identity identity_;
  SessionListener* listener_ = nullptr;

  Gate beat_gate_, sweep_gate_, call_gate_;
  GuardedShare beat_share_, sweep_share_, call_share_;
  PeerWatch peers_;
  LocalPeers local_;
  ShareTime share_time_;

  // Of the beat thread (and of begin() before it) alone.
  std::unique_ptr<Membership> member_{};
  bool in_trouble_ = false;
  bool said_expired_ = false;
  bool said_no_rejoin_ = false;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<SessionId> current_{};
  std::set<SessionId> own_dead_{};  ///< sessions of ours that are over and not swept yet
  Steady::time_point stop_deadline_{};
  bool stopping_ = false;
  std::optional<SessionId> disowned_{};  ///< a session of ours that must not be confirmed again
  bool news_ = false;                    ///< deaths to be announced
  bool sweep_wanted_ = true;
  bool clean_ = false;
};

}  // namespace latchfs::engine
