// Deciding about requests: who may go on, who steps back into the queue, who is refused.
#include <algorithm>
#include <tuple>

#include "latchfs/protocol/file_claims.hpp"

namespace latchfs::protocol {
namespace {

using namespace std::chrono_literals;

// A rival of a simultaneous try yields in its next round, some round trips from now; a try looks again for this long at most.
constexpr Nanos kTryPatience = 500ms;

}  // namespace

Claim FileClaims::claim_of(const Waiting& waiting) const {
  if (const Own* own = waiting.name ? find(*waiting.name) : nullptr) return own->entry.claim;
  Claim claim;
  claim.file = file_;
  claim.space = waiting.want.space;
  claim.mode = waiting.want.mode;
  claim.range = waiting.want.range;
  claim.ticket = waiting.want.ticket;
  return claim;
}

// Turns what was decided about a request into names. Where the own granted claims cover it, no claim is made: one look for waiters of others
// is enough. Else one claim spans all that is not covered.
void FileClaims::plan(Waiting& waiting, const Publisher& to) {
  const Want& want = waiting.want;
  const std::vector<Piece> open = uncovered({{want.range, want.mode}}, want.space, std::nullopt);
  const ByteRange hull = open.empty() ? want.range : ByteRange{open.front().range.first, open.back().range.last};
  // Own claims that it counted on may have been let go meanwhile.
  const bool outgrown = (waiting.phase == Phase::covered && !open.empty()) ||
                        (waiting.phase == Phase::claimed && !open.empty() && !claim_of(waiting).range.contains(hull));
  const bool starts = waiting.phase == Phase::fresh || waiting.move == Move::to_claim || outgrown;
  Claim claim;
  claim.space = want.space;
  claim.mode = want.mode;
  claim.range = want.range;
  claim.ticket = want.ticket;
  if (starts) {
    drop_name(waiting.name);
    waiting.phase = open.empty() ? Phase::covered : Phase::claimed;
    if (!open.empty()) {
      claim.range = hull;
      waiting.name = publish(EntryKind::held, claim, Role::candidate, to);
    }
    fresh_decision_ = true;
  } else if (waiting.move == Move::to_queue) {
    drop_name(waiting.name);
    waiting.name = publish(EntryKind::queued, claim, Role::queued, to);
    waiting.phase = Phase::queued;
  }
  waiting.move = Move::none;
}

bool FileClaims::kept_opposes(const Claim& claim) const {
  return std::any_of(own_.begin(), own_.end(), [&](const Own& own) {
    return own.role == Role::granted && own.there && conflicts(own.entry.claim, claim);
  });
}

// Its session shows another claim with common bytes: it is replacing one by the other and waits for rivals to step back.
bool FileClaims::is_replacing(const LockEntry& entry) const {
  return std::any_of(seen_.others.begin(), seen_.others.end(), [&](const LockEntry& twin) {
    return twin.kind != EntryKind::queued && twin.claim.sid == entry.claim.sid && twin.claim.seq != entry.claim.seq &&
           twin.claim.space == entry.claim.space && twin.claim.range.overlaps(entry.claim.range);
  });
}

void FileClaims::weigh_rival(const LockEntry& rival, const Claim& mine, const Want& want, const Peers& peers,
                             const LocalTable& table, Verdict& verdict) const {
  const bool queued = rival.kind == EntryKind::queued;
  const bool ahead = better(rival.claim, mine, policy_);
  if (queued || kept_opposes(rival.claim)) {
    // It cannot be granted now: a waiter. Waiters are about fairness only, and never delay the owner they wait for.
    verdict.ignored = verdict.ignored || !queued;
    if (table.opposes(want.owner, rival.claim) || !ahead) return;
    if (queued && (!want.wait || peers.is_late(rival.claim.sid))) return;
    verdict.better = verdict.better || want.wait;
    verdict.refuse = verdict.refuse || !want.wait;
    return;
  }
  verdict.drain = true;
  verdict.better = verdict.better || ahead;
  verdict.replacing = verdict.replacing || is_replacing(rival);
  // A later rival may be a try that is about to yield to this one.
  if (std::tie(rival.claim.ticket, rival.claim.sid) < std::tie(mine.ticket, mine.sid)) verdict.refuse = true;
}

FileClaims::Verdict FileClaims::weigh(const Waiting& waiting, const Peers& peers, const LocalTable& table) const {
  Verdict verdict;
  const Claim mine = claim_of(waiting);
  for (const LockEntry& rival : seen_.others) {
    if (conflicts(rival.claim, mine)) weigh_rival(rival, mine, waiting.want, peers, table, verdict);
  }
  if (seen_.unknown_claim) verdict.drain = verdict.refuse = true;  // fail closed
  return verdict;
}

void FileClaims::decide_all(const Peers& peers, LocalTable& table, bool lease_ok, ObserveTime now, Outcome& outcome) {
  std::sort(wants_.begin(), wants_.end(), [&](const Waiting& a, const Waiting& b) {
    const Claim first = claim_of(a);
    const Claim second = claim_of(b);
    if (better(first, second, policy_) != better(second, first, policy_)) return better(first, second, policy_);
    return a.want.id < b.want.id;
  });
  ahead_ = 0;
  if (!wants_.empty()) {
    const Claim best = claim_of(wants_.front());
    ahead_ = static_cast<std::size_t>(std::count_if(seen_.others.begin(), seen_.others.end(), [&](const LockEntry& rival) {
      return conflicts(rival.claim, best) && better(rival.claim, best, policy_);
    }));
  }
  std::erase_if(wants_, [&](Waiting& waiting) { return decide(waiting, peers, table, lease_ok, now, outcome); });
}

// True: the request is answered and leaves the list.
bool FileClaims::decide(Waiting& waiting, const Peers& peers, LocalTable& table, bool lease_ok, ObserveTime now,
                        Outcome& outcome) {
  if (waiting.phase == Phase::fresh) return false;
  const Own* own = waiting.name ? find(*waiting.name) : nullptr;
  if (own != nullptr && !own->listed) return false;  // the listing did not show it: look again
  const Verdict verdict = weigh(waiting, peers, table);
  if (waiting.phase == Phase::queued) {
    if (verdict.better || verdict.replacing) return false;
    waiting.move = Move::to_claim;
    fresh_decision_ = true;
    return false;
  }
  // Another local request that asked at the same moment may have been first.
  const bool beaten_here = !table.is_free(waiting.want.id);
  if (!verdict.drain && !verdict.better && !verdict.refuse && !beaten_here) {
    if (!lease_ok) return false;
    grant(waiting, verdict, table, outcome);
    return true;
  }
  if (waiting.want.wait) {
    if (verdict.better || verdict.replacing) waiting.move = Move::to_queue;
    return false;
  }
  if (!waiting.yields_by) waiting.yields_by = now + kTryPatience;
  if (!verdict.refuse && !beaten_here && now < *waiting.yields_by) return false;
  drop_name(waiting.name);
  outcome.refused.push_back(waiting.want.id);
  return true;
}

void FileClaims::grant(Waiting& waiting, const Verdict& verdict, LocalTable& table, Outcome& outcome) {
  const bool new_claim = waiting.phase == Phase::claimed;
  if (new_claim) {
    Own* own = find(*waiting.name);
    touch(waiting.want.space, own->entry.claim.range);  // older claims that this one overlaps are fitted anew
    own->role = Role::granted;
    own->was_granted = true;
  } else {
    drop_name(waiting.name);
  }
  passed_over_ = passed_over_ || verdict.ignored;
  table.take(waiting.want.id);
  outcome.granted.push_back({waiting.want.id, new_claim});
}

}  // namespace latchfs::protocol
