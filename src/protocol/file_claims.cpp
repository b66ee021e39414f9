#include "latchfs/protocol/file_claims.hpp"

#include <algorithm>
#include <cerrno>

namespace latchfs::protocol {
namespace {

using namespace std::chrono_literals;

// How often a waiter looks: the first one from 2 ms, doubling to 100 ms while nothing changes; the k-th one k times slower, to 1 s.
constexpr Nanos kFirstLook = 2ms;
constexpr Nanos kSteadyLook = 100ms;
constexpr Nanos kSlowestLook = 1s;
// After an error of the share; long enough not to load a share in trouble, short against any lease.
constexpr Nanos kTroubleLook = 20ms;

// Errors that another try within seconds will not mend.
bool is_lasting(const Error& error) {
  if (error.code != Errc::system) return true;
  switch (error.sys) {
    case ENOSPC:
    case EDQUOT:
    case EACCES:
    case EPERM:
    case EROFS:
    case EMLINK:
    case ELOOP:
    case ENOTDIR:
    case ENAMETOOLONG: return true;
    default: return false;
  }
}

// Spreads the looks of many hosts: +-25 %, from a number that differs by file and look.
Nanos jittered(Nanos delay, std::uint64_t seed) {
  seed = (seed ^ (seed >> 31)) * 0x9e3779b97f4a7c15U;
  const auto percent = static_cast<Nanos::rep>(75 + (seed >> 33) % 51);
  return delay * percent / 100;
}

}  // namespace

void FileClaims::add(const Want& want, ObserveTime now) {
  wants_.push_back(Waiting{want, now + patience_});
  fresh_decision_ = true;
  delay_ = Nanos{0};
}

bool FileClaims::cancel(WaiterId id) {
  const auto it = std::find_if(wants_.begin(), wants_.end(), [&](const Waiting& w) { return w.want.id == id; });
  if (it == wants_.end()) return false;
  drop_name(it->name);
  wants_.erase(it);
  return true;
}

void FileClaims::touch(Space space, ByteRange range) {
  for (Own& own : own_) {
    const Claim& claim = own.entry.claim;
    if (own.role == Role::granted && claim.space == space && claim.range.overlaps(range)) own.touched = true;
  }
}

void FileClaims::lose_session() {
  own_.clear();
  litter_.clear();
  seen_ = {};
  passed_over_ = trouble_ = false;
  for (Waiting& waiting : wants_) {
    waiting.phase = Phase::fresh;
    waiting.move = Move::none;
    waiting.name.reset();
  }
  fresh_decision_ = !wants_.empty();
  delay_ = Nanos{0};
  next_look_.reset();
}

Round FileClaims::next_round(const SessionId& self, const NewSeq& new_seq, const LocalTable& table, ObserveTime now) {
  Round round;
  const bool due = !next_look_ || now >= *next_look_;
  if (trouble_ && !due) return round;
  const Publisher to{self, new_seq, round};
  reshape(to, table);
  for (Waiting& waiting : wants_) plan(waiting, to);
  round.remove.swap(litter_);
  for (const Own& own : own_) {
    if (own.role != Role::dropping && !(own.role == Role::retiring && own.proven)) continue;
    round.remove.push_back(own.entry);
    if (own.was_granted) round.flush_first = true;
  }
  const bool waits = !wants_.empty() || has_unproven();
  round.list = waits && (fresh_decision_ || due);
  return round;
}

Outcome FileClaims::apply(const Round& round, const RoundResult& result, const Peers& peers, LocalTable& table, bool lease_ok,
                          ObserveTime now) {
  Outcome outcome;
  trouble_ = false;
  take_published(round, result, now, outcome);
  take_removed(round, result);
  if (result.listing && !*result.listing) listing_failed(result.listing->error(), now, outcome);
  if (result.listing && *result.listing) {
    take_listing(**result.listing, outcome);
    fresh_decision_ = false;
    prove_leaving();
    if (!outcome.share_forgot) decide_all(peers, table, lease_ok, now, outcome);
  }
  schedule(round.list, now);
  return outcome;
}

const FileClaims::Own* FileClaims::find(Seq seq) const {
  const auto it = std::find_if(own_.begin(), own_.end(), [&](const Own& own) { return own.entry.claim.seq == seq; });
  return it == own_.end() ? nullptr : &*it;
}

Seq FileClaims::publish(EntryKind kind, Claim claim, Role role, const Publisher& to) {
  claim.file = file_;
  claim.sid = to.self;
  claim.seq = to.new_seq();
  Own own{LockEntry{kind, claim}};
  own.role = role;
  own.was_granted = role == Role::granted;
  to.round.publish.push_back(own.entry);
  own_.push_back(std::move(own));
  return claim.seq;
}

void FileClaims::drop_name(std::optional<Seq>& seq) {
  if (!seq) return;
  if (Own* own = find(*seq)) own->role = Role::dropping;
  seq.reset();
}

void FileClaims::take_published(const Round& round, const RoundResult& result, ObserveTime now, Outcome& outcome) {
  for (std::size_t i = 0; i < round.publish.size(); ++i) {
    const Seq seq = round.publish[i].claim.seq;
    // The name is ours alone: "it exists" means that an earlier try was done and its reply lost.
    if (result.published[i] || is_errno(result.published[i].error(), EEXIST)) {
      if (Own* own = find(seq)) own->there = true;
    } else {
      publish_failed(seq, result.published[i].error(), now, outcome);
    }
  }
}

// The name may exist all the same, now or later: it is removed until the share says that it is not there.
void FileClaims::publish_failed(Seq seq, const Error& error, ObserveTime now, Outcome& outcome) {
  trouble_ = true;
  Own* failed = find(seq);
  if (failed == nullptr) return;
  const Role role = std::exchange(failed->role, Role::dropping);
  failed->was_granted = false;
  if (role == Role::granted) {
    // A narrower claim that could not be made: the wider one stays until there is room for it.
    for (Own& own : own_) {
      const bool wider = own.role == Role::retiring && own.entry.claim.space == failed->entry.claim.space &&
                         own.entry.claim.range.overlaps(failed->entry.claim.range);
      if (!wider) continue;
      own.role = Role::granted;
      own.touched = own.excused = true;
      own.proven = false;
    }
    return;
  }
  const auto it = std::find_if(wants_.begin(), wants_.end(), [&](const Waiting& w) { return w.name == seq; });
  if (it == wants_.end()) return;
  it->name.reset();
  it->phase = Phase::fresh;
  it->move = Move::none;
  if (!is_lasting(error) && now < it->gives_up) return;
  outcome.failed.push_back(it->want.id);
  wants_.erase(it);
}

void FileClaims::take_removed(const Round& round, const RoundResult& result) {
  for (std::size_t i = 0; i < round.remove.size(); ++i) {
    const auto it = std::find_if(own_.begin(), own_.end(), [&](const Own& own) { return own.entry == round.remove[i]; });
    if (it == own_.end()) continue;  // litter of a dead session: whoever meets it next tries again
    if (result.removed[i] || is_errno(result.removed[i].error(), ENOENT)) {
      own_.erase(it);
    } else {
      trouble_ = true;
      it->excused = it->removal_tried = true;
    }
  }
}

// Names in locks/ are never renamed, so a complete fresh listing shows each of them; one miss is still looked at twice.
void FileClaims::take_listing(const FolderView& view, Outcome& outcome) {
  for (Own& own : own_) {
    const bool found = std::find(view.mine.begin(), view.mine.end(), own.entry) != view.mine.end();
    own.listed = found && own.there;
    own.there = own.there || found;
    own.missed = found ? 0 : own.missed + 1;
    const bool kept = (own.role == Role::granted || own.role == Role::retiring) && !own.removal_tried;
    if (own.missed >= 2 && own.there && kept) outcome.share_forgot = true;
  }
  for (const LockEntry& entry : view.mine) {
    if (find(entry.claim.seq) != nullptr) continue;
    Own orphan{entry};  // published by a call that was given up and took effect later
    orphan.role = Role::dropping;
    orphan.there = true;
    own_.push_back(std::move(orphan));
  }
  for (Waiting& waiting : wants_) {
    const Own* own = waiting.name ? find(*waiting.name) : nullptr;
    if (own == nullptr || own->missed < 2) continue;
    drop_name(waiting.name);
    waiting.phase = Phase::fresh;
    waiting.move = Move::none;
  }
  if (view.others != seen_.others) delay_ = Nanos{0};
  litter_ = view.litter;
  seen_ = view;
}

void FileClaims::listing_failed(const Error& error, ObserveTime now, Outcome& outcome) {
  trouble_ = true;
  std::erase_if(wants_, [&](Waiting& waiting) {
    if (!is_lasting(error) && now < waiting.gives_up) return false;
    outcome.failed.push_back(waiting.want.id);
    drop_name(waiting.name);
    return true;
  });
}

bool FileClaims::has_unproven() const {
  return std::any_of(own_.begin(), own_.end(), [](const Own& own) { return own.role == Role::retiring && !own.proven; });
}

void FileClaims::schedule(bool listed, ObserveTime now) {
  if (!trouble_ && wants_.empty() && !has_unproven()) {
    next_look_.reset();
    return;
  }
  if (listed || trouble_) delay_ = delay_ == Nanos{0} ? kFirstLook : std::min(delay_ * 2, kSteadyLook);
  if (trouble_) delay_ = std::max(delay_, kTroubleLook);
  if (!listed && !trouble_ && next_look_) return;
  const auto slower = static_cast<Nanos::rep>(std::max<std::size_t>(ahead_, 1));
  next_look_ = now + jittered(std::min(std::max(delay_, kFirstLook) * slower, kSlowestLook), file_.value + ++looks_);
}

std::vector<Seq> FileClaims::leaving() const {
  std::vector<Seq> names;
  for (const Own& own : own_) {
    const bool leaves = own.role == Role::dropping || own.role == Role::retiring;
    if (leaves && own.was_granted && !own.excused) names.push_back(own.entry.claim.seq);
  }
  return names;
}

bool FileClaims::fitted() const {
  return std::none_of(own_.begin(), own_.end(),
                      [](const Own& own) { return own.role == Role::granted && own.touched && !own.excused; });
}

std::vector<Claim> FileClaims::granted() const {
  std::vector<Claim> claims;
  for (const Own& own : own_) {
    if (own.role == Role::granted) claims.push_back(own.entry.claim);
  }
  return claims;
}

}  // namespace latchfs::protocol
