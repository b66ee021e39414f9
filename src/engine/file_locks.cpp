#include "engine/file_locks.hpp"

#include <algorithm>

namespace latchfs::engine {
namespace {

using namespace std::chrono_literals;
using protocol::Mode;
using protocol::Space;

// close() returns before the daemon has seen the release of an OFD or flock lock. A try that meets a local lock looks once more after this
// time, so that releases already on their way are served first.
constexpr Nanos kReleaseGrace = 3ms;

locktable::Mode local(Mode mode) { return mode == Mode::write ? locktable::Mode::write : locktable::Mode::read; }
Mode shared(locktable::Mode mode) { return mode == locktable::Mode::write ? Mode::write : Mode::read; }

bool oppose(const LockCall& a, const LockCall& b) {
  return a.space == b.space && a.owner != b.owner && a.range.overlaps(b.range) && (a.mode == Mode::write || b.mode == Mode::write);
}

}  // namespace

void FileLocks::lock(WaiterId id, LockCall call, LockService::Done done, const Now& now, Answers& answers) {
  if (call.handle->lost()) {
    answers.push_back({std::move(done), fail(Errc::lease_lost)});
    return;
  }
  locktable::LockTable& holds = table(call.space);
  if (holds.holds(call.owner, local(call.mode), call.range)) {
    // Nothing new is needed; bytes that were held more strongly are given back to the others.
    const std::vector<locktable::Demand> before = holds.demand(call.range);
    hold(call, now.wall_us);
    const bool weaker = holds.demand(call.range) != before;
    if (weaker) {
      claims_.touch(call.space, call.range);
      claims_.nudge();
    }
    answer_when_gone(id, std::move(done), weaker, answers);
    return;
  }
  if (call.space == Space::flock) released(Space::flock, holds.release_owner(call.owner));  // flock(2): a conversion lets go first
  enqueue(Request{id, std::move(call), std::move(done), now.ticket, now.wall_us});
  admit(now.observed, answers);
}

void FileLocks::unlock(WaiterId id, const LockCall& call, LockService::Done done, Answers& answers) {
  if (call.handle->lost()) {
    answers.push_back({std::move(done), fail(Errc::lease_lost)});
    return;
  }
  const std::vector<locktable::Hold> gone = table(call.space).release(call.owner, call.range);
  released(call.space, gone);
  answer_when_gone(id, std::move(done), !gone.empty(), answers);
}

void FileLocks::drop_owner(LockOwner owner, LockService::Done done, Answers& answers) {
  const std::vector<locktable::Hold> gone = table(Space::posix).release_owner(owner);
  released(Space::posix, gone);
  answer_when_gone(WaiterId{}, std::move(done), !gone.empty(), answers);
}

void FileLocks::drop_handle(HandleId handle, LockService::Done done, Answers& answers) {
  bool something = false;
  for (const Space space : {Space::posix, Space::flock}) {
    const std::vector<locktable::Hold> gone = table(space).release_handle(handle);
    released(space, gone);
    something = something || !gone.empty();
  }
  std::vector<WaiterId> waiting;
  for (const Request& request : queue_) {
    if (request.call.handle->id() == handle) waiting.push_back(request.id);
  }
  for (const WaiterId id : waiting) cancel(id, answers);
  answer_when_gone(WaiterId{}, std::move(done), something, answers);
}

bool FileLocks::cancel(WaiterId id, Answers& answers) {
  const auto it = find(id);
  if (it != queue_.end()) {
    claims_.cancel(id);
    answers.push_back({it->done, fail(Errc::cancelled)});
    queue_.erase(it);
    claims_.nudge();  // those behind it may go on
    return true;
  }
  const auto leaving = std::find_if(leaving_.begin(), leaving_.end(), [&](const Leaving& l) { return l.id == id; });
  if (leaving == leaving_.end()) return false;
  answers.push_back({std::move(leaving->done), {}});
  leaving_.erase(leaving);
  return true;
}

std::optional<Blocker> FileLocks::blocker(const LockCall& call) const {
  const std::optional<locktable::Hold> found = table(call.space).conflict(call.owner, local(call.mode), call.range);
  if (!found) return std::nullopt;
  return Blocker{shared(found->mode), found->range, found->pid};
}

// ---- the local queue

bool FileLocks::goes_before(const Request& a, const Request& b) const {
  if (a.call.mode != b.call.mode) return a.call.mode == Mode::write;
  if (a.ticket != b.ticket) return a.ticket < b.ticket;
  return a.id < b.id;
}

void FileLocks::enqueue(Request request) {
  const auto place = std::find_if(queue_.begin(), queue_.end(), [&](const Request& r) { return goes_before(request, r); });
  queue_.insert(place, std::move(request));
}

std::list<FileLocks::Request>::const_iterator FileLocks::find(WaiterId id) const {
  return std::find_if(queue_.begin(), queue_.end(), [&](const Request& r) { return r.id == id; });
}

// No other local owner holds or is first to have anything in its way. A request that waits for this very owner is not ahead of it.
bool FileLocks::is_next(const Request& request) const {
  const LockCall& call = request.call;
  if (table(call.space).conflict(call.owner, local(call.mode), call.range)) return false;
  for (const Request& ahead : queue_) {
    if (&ahead == &request) return true;
    if (!oppose(ahead.call, call)) continue;
    if (!call.wait && !ahead.submitted) continue;  // it waits for a local lock: no reason to refuse a try
    if (!table(call.space).opposes(call.owner, local(ahead.call.mode), ahead.call.range)) return false;
  }
  return true;
}

void FileLocks::admit(ObserveTime now, Answers& answers) {
  for (auto it = queue_.begin(); it != queue_.end();) {
    if (it->submitted) {
      ++it;
    } else if (is_next(*it)) {
      const LockCall& call = it->call;
      claims_.add({it->id, call.owner, call.space, call.mode, call.range, it->ticket, call.wait}, now);
      it->submitted = true;
      ++it;
    } else if (it->call.wait || (it->last_try && now < *it->last_try)) {
      ++it;
    } else if (!it->last_try) {
      it->last_try = now + kReleaseGrace;
      ++it;
    } else {
      answers.push_back({std::move(it->done), fail(Errc::conflict)});
      it = queue_.erase(it);
    }
  }
}

// ---- the table

std::vector<protocol::Piece> FileLocks::demand(Space space, ByteRange within) const {
  std::vector<protocol::Piece> pieces;
  for (const locktable::Demand& held : table(space).demand(within)) pieces.push_back({held.range, shared(held.mode)});
  return pieces;
}

bool FileLocks::opposes(LockOwner owner, const protocol::Claim& claim) const {
  return table(claim.space).opposes(owner, local(claim.mode), claim.range);
}

bool FileLocks::is_free(WaiterId id) const {
  const auto it = find(id);
  return it != queue_.end() && !table(it->call.space).conflict(it->call.owner, local(it->call.mode), it->call.range);
}

void FileLocks::take(WaiterId id) {
  const auto it = find(id);
  hold(it->call, it->since_us);
  granted_.push_back(*it);
  queue_.erase(it);
}

void FileLocks::hold(const LockCall& call, std::int64_t since_us) {
  handles_.emplace(call.handle->id(), call.handle);
  const std::vector<locktable::Hold> replaced =
      table(call.space).acquire({call.range, local(call.mode), call.owner, call.handle->id(), call.pid, since_us});
  count_locks(call.handle->id());
  for (const locktable::Hold& older : replaced) count_locks(older.handle);  // they may have come through another handle
}

void FileLocks::count_locks(HandleId handle) {
  const auto it = handles_.find(handle);
  if (it == handles_.end()) return;
  const std::size_t count = tables_[0].count(handle) + tables_[1].count(handle);
  it->second->set_locks(static_cast<std::uint32_t>(count));
  if (count == 0) handles_.erase(it);
}

void FileLocks::released(Space space, const std::vector<locktable::Hold>& gone) {
  for (const locktable::Hold& hold : gone) {
    claims_.touch(space, hold.range);
    count_locks(hold.handle);
  }
  if (!gone.empty()) claims_.nudge();
}

void FileLocks::take_back(const LockCall& call) { released(call.space, table(call.space).release(call.owner, call.range)); }

// ---- releases that wait for the share

void FileLocks::answer_when_gone(WaiterId id, LockService::Done done, bool something_left, Answers& answers) {
  if (something_left) {
    leaving_.push_back({id, std::move(done)});
  } else {
    answers.push_back({std::move(done), {}});
  }
}

void FileLocks::answer_gone(Answers& answers) {
  const std::vector<Seq> still = claims_.leaving();
  for (auto it = leaving_.begin(); it != leaving_.end();) {
    const bool waits = std::any_of(it->names.begin(), it->names.end(), [&](Seq seq) {
      return std::find(still.begin(), still.end(), seq) != still.end();
    });
    if (!it->bound || waits) {
      ++it;
    } else {
      answers.push_back({std::move(it->done), {}});
      it = leaving_.erase(it);
    }
  }
}

// ---- rounds

protocol::Round FileLocks::begin_round(const SessionId& self, const protocol::FileClaims::NewSeq& new_seq, ObserveTime now,
                                       Answers& answers) {
  admit(now, answers);
  protocol::Round round = claims_.next_round(self, new_seq, *this, now);
  for (Leaving& leaving : leaving_) {
    if (leaving.bound || !claims_.fitted()) continue;
    leaving.bound = true;
    leaving.names = claims_.leaving();
  }
  answer_gone(answers);
  return round;
}

FileLocks::Finished FileLocks::end_round(const protocol::Round& round, const protocol::RoundResult& result,
                                         const protocol::Peers& peers, bool lease_ok, ObserveTime now, Answers& answers) {
  Finished finished;
  const protocol::Outcome outcome = claims_.apply(round, result, peers, *this, lease_ok, now);
  finished.share_forgot = outcome.share_forgot;
  for (Request& request : std::exchange(granted_, {})) {
    const bool fresh = std::any_of(outcome.granted.begin(), outcome.granted.end(),
                                   [&](const protocol::Outcome::Grant& g) { return g.id == request.id && g.new_claim; });
    if (fresh) {
      finished.granted.push_back({std::move(request.done), {}});
      finished.granted_calls.push_back(std::move(request.call));
    } else {
      answers.push_back({std::move(request.done), {}});
    }
  }
  const auto give_up = [&](WaiterId id, Errc code) {
    const auto it = find(id);
    if (it == queue_.end()) return;
    answers.push_back({it->done, fail(code)});
    queue_.erase(it);
  };
  for (const WaiterId id : outcome.refused) give_up(id, Errc::conflict);
  for (const WaiterId id : outcome.failed) give_up(id, Errc::no_locks);
  answer_gone(answers);
  return finished;
}

std::vector<FileLocks::LostLock> FileLocks::lose_session(Answers& answers) {
  std::vector<LostLock> lost;
  for (auto& [id, handle] : handles_) handle->set_lost();
  for (const Space space : {Space::posix, Space::flock}) {
    for (const locktable::Hold& hold : table(space).release_all()) lost.push_back({space, hold});
  }
  for (auto& [id, handle] : handles_) handle->set_locks(0);
  handles_.clear();
  claims_.lose_session();
  for (auto it = queue_.begin(); it != queue_.end();) {
    if (!it->call.handle->lost()) {
      ++it;
      continue;
    }
    claims_.cancel(it->id);
    answers.push_back({std::move(it->done), fail(Errc::lease_lost)});
    it = queue_.erase(it);
  }
  for (Leaving& leaving : std::exchange(leaving_, {})) answers.push_back({std::move(leaving.done), {}});
  return lost;
}

void FileLocks::close(Answers& answers) {
  while (!queue_.empty()) cancel(queue_.front().id, answers);
  for (const Space space : {Space::posix, Space::flock}) released(space, table(space).release_all());
}

std::optional<ObserveTime> FileLocks::next_look() const {
  std::optional<ObserveTime> next = claims_.next_look();
  for (const Request& request : queue_) {
    if (!request.submitted && request.last_try && (!next || *request.last_try < *next)) next = request.last_try;
  }
  return next;
}

bool FileLocks::idle() const {
  return queue_.empty() && leaving_.empty() && claims_.idle() && tables_[0].empty() && tables_[1].empty();
}

}  // namespace latchfs::engine
