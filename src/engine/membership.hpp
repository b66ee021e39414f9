#pragma once
#include <optional>
#include <string>
#include <vector>

#include "latchfs/base/clock.hpp"
#include "latchfs/base/ids.hpp"
#include "latchfs/protocol/documents.hpp"
#include "latchfs/protocol/entry_name.hpp"
#include "latchfs/share/share.hpp"

namespace latchfs::engine {

/// One session of this mount: its names on the share and its beat. Blocks on the share; one thread at a time.
class Membership {
 public:
  Membership(share::Share& share, const Clock& clock) : share_(share), clock_(clock), sid_(random_session_id()) {}

  const SessionId& sid() const { return sid_; }
  std::string beat_name() const;

  /// Makes inbox/<sid>/, beats/<sid>.0 and sessions/<sid>, in this order: whatever stops half way can be broken and
  /// swept.
  Result<void> open(const protocol::SessionInfo& info);

  enum class Fate { confirmed, unknown, lost };
  struct Beat {
    Fate fate = Fate::unknown;
    LeaseTime began{};     ///< the lease counts from here (confirmed)
    std::string why{};     ///< (unknown, lost)
    bool by_peer = false;  ///< another daemon broke the session (lost)
    bool timed = false;    ///< the two times below are known: the rename itself was answered
    WallTime before{}, after{};
  };
  /// Tries one beat, and decides by a fresh listing where the rename gave an error. `lease_over`: nobody relies on the
  /// session now.
  Beat beat(bool lease_over);

  /// Why the session is lost, in the light of a listing of beats/ made after a confirmed beat.
  std::optional<Beat> judge(const std::vector<protocol::BeatEntry>& beats) const;

  /// Ends the session: own beat to `.dead`, then inbox, session and `.dead` go. May be called again after an error.
  Result<void> retire();

 private:
  Beat decide(const Error& error, bool lease_over);
  Beat decide_unseen(const Error& error, bool lease_over);
  Result<bool> is_registered();

  share::Share& share_;
  const Clock& clock_;
  const SessionId sid_;
  BeatNumber last_{0};                     ///< the last confirmed beat
  std::optional<LeaseTime> not_before_{};  ///< an unanswered rename of last_ was not done before this
  int unseen_ = 0;                         ///< listings in a row that showed no beat of ours
};

}  // namespace latchfs::engine
