// Fitting the claims on the share to what the host's programs hold, and deciding when a claim that was replaced may go.
#include <algorithm>

#include "latchfs/protocol/file_claims.hpp"

namespace latchfs::protocol {
namespace {

bool strong_enough(Mode have, Mode need) { return have == Mode::write || need == Mode::read; }

// What is left of `piece` without the bytes of `cut`.
void cut_out(const Piece& piece, const ByteRange& cut, std::vector<Piece>& rest) {
  if (!piece.range.overlaps(cut)) {
    rest.push_back(piece);
    return;
  }
  if (piece.range.first < cut.first) rest.push_back({{piece.range.first, cut.first - 1}, piece.mode});
  if (piece.range.last > cut.last) rest.push_back({{cut.last + 1, piece.range.last}, piece.mode});
}

// What a claim of this mode has to cover: it can give no more than its own mode.
std::vector<Piece> within_mode(const std::vector<Piece>& demand, Mode mode) {
  std::vector<Piece> pieces;
  for (Piece piece : demand) {
    if (mode == Mode::read) piece.mode = Mode::read;
    if (!pieces.empty() && pieces.back().mode == piece.mode && pieces.back().range.last + 1 == piece.range.first) {
      pieces.back().range.last = piece.range.last;
    } else {
      pieces.push_back(piece);
    }
  }
  return pieces;
}

}  // namespace

std::vector<Piece> FileClaims::uncovered(std::vector<Piece> pieces, Space space, std::optional<Seq> except) const {
  for (const Own& own : own_) {
    const Claim& claim = own.entry.claim;
    if (own.role != Role::granted || claim.space != space || claim.seq == except) continue;
    std::vector<Piece> rest;
    for (const Piece& piece : pieces) {
      if (strong_enough(claim.mode, piece.mode)) {
        cut_out(piece, claim.range, rest);
      } else {
        rest.push_back(piece);
      }
    }
    pieces = std::move(rest);
  }
  return pieces;
}

void FileClaims::reshape(const Publisher& to, const LocalTable& table) {
  bool changed = false;
  const std::size_t before = own_.size();  // what fit() adds is fitted already
  for (std::size_t i = 0; i < before; ++i) {
    if (!std::exchange(own_[i].touched, false) || own_[i].role != Role::granted) continue;
    fit(i, to, table);
    changed = true;
  }
  if (!changed) return;
  prove_leaving();
  fresh_decision_ = fresh_decision_ || has_unproven();
}

void FileClaims::fit(std::size_t index, const Publisher& to, const LocalTable& table) {
  const Claim claim = own_[index].entry.claim;
  const std::vector<Piece> held = within_mode(table.demand(claim.space, claim.range), claim.mode);
  const std::vector<Piece> needed = uncovered(held, claim.space, claim.seq);
  if (needed.size() == 1 && needed[0].range == claim.range && needed[0].mode == claim.mode) return;
  own_[index].role = held.empty() && !passed_over_ ? Role::dropping : Role::retiring;
  for (const Piece& piece : needed) {
    Claim narrower = claim;  // with its ticket: it is the same claim to others
    narrower.range = piece.range;
    narrower.mode = piece.mode;
    publish(EntryKind::held, narrower, Role::granted, to);
  }
}

void FileClaims::prove_leaving() {
  for (Own& own : own_) {
    if (own.role == Role::retiring && !own.proven) prove(own);
  }
  const bool rivalled = std::any_of(seen_.others.begin(), seen_.others.end(), [&](const LockEntry& entry) {
    return entry.kind != EntryKind::queued && kept_opposes(entry.claim);
  });
  if (!rivalled) passed_over_ = false;
}

// See the essay at the class: a rival matters that conflicts with the leaving claim and with one that stays.
void FileClaims::prove(Own& leaving) const {
  bool proven = !seen_.unknown_claim;  // it may be in conflict with anything
  bool excused = true;
  for (const Own& own : own_) {
    const Claim& kept = own.entry.claim;
    if (own.role != Role::granted || kept.space != leaving.entry.claim.space) continue;
    if (!own.listed) {
      proven = excused = false;  // no listing yet that began when it was there
      break;
    }
    for (const LockEntry& rival : seen_.others) {
      if (rival.kind == EntryKind::queued || !conflicts(rival.claim, leaving.entry.claim) || !conflicts(rival.claim, kept)) continue;
      proven = false;
      excused = excused && better(rival.claim, kept, policy_);
    }
  }
  leaving.proven = proven;
  leaving.excused = !proven && excused;
}

}  // namespace latchfs::protocol
