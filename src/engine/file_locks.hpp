#pragma once
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "latchfs/engine/lock_service.hpp"
#include "latchfs/locktable/lock_table.hpp"
#include "latchfs/protocol/file_claims.hpp"

namespace latchfs::engine {

/// All locks of one file on this host: the local table in both spaces, the local queue, and the claims on the share that follow them. A passive
/// machine: it makes no call, knows no thread, and gives answers back in a list for the caller to deliver when no mutex is held. The caller keeps it to
/// one thread at a time, and runs the rounds of begin_round() one after the other.
class FileLocks final : private protocol::LocalTable {
 public:
  struct Answer {
    LockService::Done done;
    Result<void> result;
  };
  using Answers = std::vector<Answer>;
  /// The two clocks a request is stamped with.
  struct Now {
    ObserveTime observed;
    std::int64_t wall_us = 0;
    Ticket ticket;
  };
  struct LostLock {
    protocol::Space space = protocol::Space::posix;
    locktable::Hold hold;
  };

  FileLocks(FileId file, protocol::QueuePolicy policy, Nanos patience) : claims_(file, policy, patience) {}

  void lock(WaiterId id, LockCall call, LockService::Done done, const Now& now, Answers& answers);
  void unlock(WaiterId id, const LockCall& call, LockService::Done done, Answers& answers);
  void drop_owner(LockOwner owner, LockService::Done done, Answers& answers);
  void drop_handle(HandleId handle, LockService::Done done, Answers& answers);
  bool cancel(WaiterId id, Answers& answers);
  /// A local lock in the way of `call`.
  std::optional<Blocker> blocker(const LockCall& call) const;

  /// The next steps on the share; empty: nothing before next_look().
  protocol::Round begin_round(const SessionId& self, const protocol::FileClaims::NewSeq& new_seq, ObserveTime now, Answers& answers);
  /// What a finished round brought. `granted` come with a new claim: refresh the file, then deliver them.
  struct Finished {
    Answers granted{};
    std::vector<LockCall> granted_calls{};  ///< in the same order
    bool share_forgot = false;
  };
  Finished end_round(const protocol::Round& round, const protocol::RoundResult& result, const protocol::Peers& peers, bool lease_ok,
                     ObserveTime now, Answers& answers);
  /// A lock that was granted but cannot be used after all (its data could not be refreshed).
  void take_back(const LockCall& call);

  /// The session is gone: every held lock is lost and its handle fenced; requests wait for the next session.
  std::vector<LostLock> lose_session(Answers& answers);
  /// Ends everything: requests are cancelled, holds let go; rounds then withdraw the names.
  void close(Answers& answers);
  /// Look at waiting requests in the next round, whatever the time.
  void nudge() { claims_.nudge(); }

  std::optional<ObserveTime> next_look() const;
  bool idle() const;
  bool has_requests() const { return !queue_.empty(); }

 private:
  struct Request {
    WaiterId id;
    LockCall call;
    LockService::Done done;
    Ticket ticket;
    std::int64_t since_us = 0;
    bool submitted = false;                      ///< the claims know it
    std::optional<ObserveTime> last_try{};       ///< a try that met a local lock looks once more then
  };
  /// A release that is answered when other hosts can have what was let go.
  struct Leaving {
    WaiterId id;
    LockService::Done done;
    bool bound = false;
    std::vector<Seq> names{};
  };

  // protocol::LocalTable
  std::vector<protocol::Piece> demand(protocol::Space space, ByteRange within) const override;
  bool opposes(LockOwner owner, const protocol::Claim& claim) const override;
  bool is_free(WaiterId id) const override;
  void take(WaiterId id) override;

  locktable::LockTable& table(protocol::Space space) { return tables_[space == protocol::Space::flock ? 1 : 0]; }
  const locktable::LockTable& table(protocol::Space space) const { return tables_[space == protocol::Space::flock ? 1 : 0]; }
  std::list<Request>::const_iterator find(WaiterId id) const;
  void enqueue(Request request);
  bool goes_before(const Request& a, const Request& b) const;
  bool is_next(const Request& request) const;
  void admit(ObserveTime now, Answers& answers);
  void hold(const LockCall& call, std::int64_t since_us);
  void released(protocol::Space space, const std::vector<locktable::Hold>& gone);
  void answer_when_gone(WaiterId id, LockService::Done done, bool something_left, Answers& answers);
  void answer_gone(Answers& answers);
  void count_locks(HandleId handle);

  locktable::LockTable tables_[2];
  protocol::FileClaims claims_;
  std::list<Request> queue_{};                    ///< the better first
  std::vector<Request> granted_{};                ///< taken in the round that is being ended
  std::list<Leaving> leaving_{};
  std::map<HandleId, std::shared_ptr<HandleFence>> handles_{};
};

}  // namespace latchfs::engine
