#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "latchfs/base/clock.hpp"
#include "latchfs/base/error.hpp"
#include "latchfs/protocol/folder_view.hpp"
#include "latchfs/protocol/priority.hpp"

namespace latchfs::protocol {

/// A stretch of bytes and the mode in which this host's programs hold it.
struct Piece {
  ByteRange range;
  Mode mode = Mode::read;
};

/// The host's own lock table, which the claims on the share follow.
class LocalTable {
 public:
  virtual ~LocalTable() = default;
  /// What all local owners together hold inside `within`: disjoint, ascending, the stronger mode where both are held.
  virtual std::vector<Piece> demand(Space space, ByteRange within) const = 0;
  /// True where `owner` holds something that `claim` of another session has to wait for.
  virtual bool opposes(LockOwner owner, const Claim& claim) const = 0;
  /// True where no other local owner holds anything in the way of the request.
  virtual bool is_free(WaiterId id) const = 0;
  /// The request is granted: its hold enters the table now.
  virtual void take(WaiterId id) = 0;
};

/// One local request that needs the share's consent.
struct Want {
  WaiterId id;
  LockOwner owner;
  Space space = Space::posix;
  Mode mode = Mode::read;
  ByteRange range;
  Ticket ticket;
  bool wait = false;
};

/// The steps of one round on the share, in this order: publish all, remove all, then one fresh listing to its end.
struct Round {
  std::vector<LockEntry> publish{};
  std::vector<LockEntry> remove{};
  bool list = false;
  bool flush_first = false;  ///< a claim under which programs wrote is about to leave: data goes out before `remove`
  bool empty() const { return publish.empty() && remove.empty() && !list; }
};

/// What became of a round: one result for each name, and the judged listing where one was asked for.
struct RoundResult {
  std::vector<Result<void>> published{};
  std::vector<Result<void>> removed{};
  std::optional<Result<FolderView>> listing{};
};

struct Outcome {
  struct Grant {
    WaiterId id;
    bool new_claim = false;  ///< other hosts may have written: refresh before the program goes on
  };
  std::vector<Grant> granted{};
  std::vector<WaiterId> refused{};  ///< another session's claim is in the way of a try
  std::vector<WaiterId> failed{};   ///< the share takes no names: ENOLCK
  bool share_forgot = false;        ///< a granted claim is no longer there though nobody of ours removed it
};

/// The own session's claims and waiters on one file, in both spaces: the whole of "publish, then list", waiting, withdrawing and replacing.
/// A passive machine: next_round() says what to do on the share, apply() takes what came of it. One round at a time. Pure: no call, no thread; time is a
/// parameter. One thread at a time.
///
/// Why a claim may go at once or not. A rival that is listing right now can miss a claim that is removed before its place is read, and one that is
/// published after its place was passed. So a claim X whose bytes stay (partly) held under another own claim Y goes only after a listing that began when Y was
/// there and shows no other session's claim that conflicts with both X and Y: whoever publishes later sees Y from the start. The same holds where Y was
/// granted over the head of a rival that X keeps waiting. A claim that leaves nothing behind goes at once.
class FileClaims {
 public:
  using NewSeq = std::function<Seq()>;

  /// `patience`: how long errors of the share are retried before a request fails; fence_after, so that a burst shorter than that loses nothing.
  FileClaims(FileId file, QueuePolicy policy, Nanos patience) : file_(file), policy_(policy), patience_(patience) {}

  /// A request that no local hold and no local waiter opposes.
  void add(const Want& want, ObserveTime now);
  /// The request is over (interrupted, closed); its names are withdrawn by the next rounds. False: not known.
  bool cancel(WaiterId id);
  /// Local holds inside `range` became fewer or weaker: the claims there are fitted to the demand by the next round.
  void touch(Space space, ByteRange range);
  /// A local hold went away: requests that waited for it are looked at by the next round.
  void nudge() { fresh_decision_ = true; }
  /// The session is gone with all its names; wants start again in the next one.
  void lose_session();

  /// The next steps; `self` is the session that publishes, `new_seq` numbers its names. An empty round: nothing to do before next_look().
  Round next_round(const SessionId& self, const NewSeq& new_seq, const LocalTable& table, ObserveTime now);
  /// Takes the outcome of the round that next_round() gave last. `lease_ok` was read after the listing: without it nothing is granted.
  Outcome apply(const Round& round, const RoundResult& result, const Peers& peers, LocalTable& table, bool lease_ok,
                ObserveTime now);

  /// When next_round() may have something to do without anything new; empty: not before the next add/cancel/touch.
  std::optional<ObserveTime> next_look() const { return next_look_; }
  /// Granted claims that are on their way out and can still be in another host's way. A claim that only waiters of better priority, or a share that
  /// answers with errors, keep there is not among them.
  std::vector<Seq> leaving() const;
  /// No touched claim still has to be fitted, but for one that the share refuses to have replaced now.
  bool fitted() const;
  /// Nothing published, nothing wanted.
  bool idle() const { return own_.empty() && wants_.empty() && litter_.empty(); }
  /// The granted claims that stand, for tests and listings.
  std::vector<Claim> granted() const;
  std::size_t wants() const { return wants_.size(); }

 private:
  enum class Role { candidate, queued, granted, retiring, dropping };
  struct Own {
    LockEntry entry;
    Role role = Role::candidate;
    bool there = false;       ///< published for sure
    bool listed = false;      ///< was there before the last listing began
    bool was_granted = false;
    bool proven = false;      ///< retiring: the listing that lets it go has been seen
    bool excused = false;     ///< leaving, but nobody need wait for it
    bool touched = false;
    bool removal_tried = false;  ///< and answered with an error: it may be gone
    int missed = 0;           ///< complete listings in a row that did not show it
  };
  enum class Phase { fresh, covered, claimed, queued };
  enum class Move { none, to_queue, to_claim };
  struct Waiting {
    Want want;
    ObserveTime gives_up;           ///< when errors of the share are no longer retried
    Phase phase = Phase::fresh;
    Move move = Move::none;
    std::optional<Seq> name{};      ///< its published name
    std::optional<ObserveTime> yields_by{};  ///< a try: how long it looks for rivals to yield
  };
  struct Verdict {
    bool drain = false;       ///< a claim that may be granted is in the way
    bool better = false;      ///< somebody of better priority is in the way or waits
    bool replacing = false;   ///< a session in the way shows two overlapping claims
    bool refuse = false;      ///< a try has no chance
    bool ignored = false;     ///< a waiter's claim was passed over
  };

  struct Publisher {
    const SessionId& self;
    const NewSeq& new_seq;
    Round& round;
  };
  // file_claims_shape.cpp: fitting claims to what programs hold
  void reshape(const Publisher& to, const LocalTable& table);
  void fit(std::size_t index, const Publisher& to, const LocalTable& table);
  std::vector<Piece> uncovered(std::vector<Piece> pieces, Space space, std::optional<Seq> except) const;
  void prove_leaving();
  void prove(Own& leaving) const;
  // file_claims_wants.cpp: deciding about wants
  void plan(Waiting& waiting, const Publisher& to);
  Verdict weigh(const Waiting& waiting, const Peers& peers, const LocalTable& table) const;
  void weigh_rival(const LockEntry& rival, const Claim& mine, const Want& want, const Peers& peers, const LocalTable& table,
                   Verdict& verdict) const;
  bool decide(Waiting& waiting, const Peers& peers, LocalTable& table, bool lease_ok, ObserveTime now, Outcome& outcome);
  void decide_all(const Peers& peers, LocalTable& table, bool lease_ok, ObserveTime now, Outcome& outcome);
  void grant(Waiting& waiting, const Verdict& verdict, LocalTable& table, Outcome& outcome);
  Claim claim_of(const Waiting& waiting) const;
  bool kept_opposes(const Claim& claim) const;
  bool is_replacing(const LockEntry& entry) const;
  // file_claims.cpp: names and listings
  const Own* find(Seq seq) const;
  Own* find(Seq seq) { return const_cast<Own*>(std::as_const(*this).find(seq)); }
  Seq publish(EntryKind kind, Claim claim, Role role, const Publisher& to);
  void drop_name(std::optional<Seq>& seq);
  void take_published(const Round& round, const RoundResult& result, ObserveTime now, Outcome& outcome);
  void publish_failed(Seq seq, const Error& error, ObserveTime now, Outcome& outcome);
  void take_removed(const Round& round, const RoundResult& result);
  void take_listing(const FolderView& view, Outcome& outcome);
  void listing_failed(const Error& error, ObserveTime now, Outcome& outcome);
  bool has_unproven() const;
  void schedule(bool listed, ObserveTime now);

  FileId file_;
  QueuePolicy policy_;
  Nanos patience_;
  std::vector<Own> own_{};
  std::vector<Waiting> wants_{};
  std::vector<LockEntry> litter_{};
  FolderView seen_{};               ///< the last complete listing
  bool fresh_decision_ = false;     ///< something new waits for a listing
  bool passed_over_ = false;        ///< a claim was granted over the head of a rival: see the essay above
  bool trouble_ = false;            ///< the share answered with errors: look again later
  Nanos delay_{0};
  std::size_t ahead_ = 0;           ///< names of others that go before the best of ours
  std::uint64_t looks_ = 0;
  std::optional<ObserveTime> next_look_{};
};

}  // namespace latchfs::protocol
