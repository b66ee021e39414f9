#include "engine/membership.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/session_names.hpp"
#include "latchfs/protocol/layout.hpp"

namespace latchfs::engine {
namespace {

using protocol::BeatEntry;
using share::Freshness;

// A name that stands still shows in a listing. One that is not there three times in a row was taken away by somebody.
constexpr int kUnseenAtMost = 3;

Membership::Beat unknown(std::string why) {
  Membership::Beat beat;
  beat.why = std::move(why);
  return beat;
}

Membership::Beat lost(std::string why) {
  Membership::Beat beat;
  beat.fate = Membership::Fate::lost;
  beat.why = std::move(why);
  return beat;
}

Membership::Beat broken_by_peer() {
  Membership::Beat beat = lost("another daemon broke it, having seen no beat of it for too long");
  beat.by_peer = true;
  return beat;
}

std::string forgot(BeatNumber seen, BeatNumber confirmed) {
  return fmt::format(
      "the share forgot confirmed changes: it shows beat {} after beat {} was confirmed (an NFS export must be `sync`; "
      "was a "
      "backup put back?)",
      seen.value, confirmed.value);
}

}  // namespace

std::string Membership::beat_name() const { return protocol::format(BeatEntry{sid_, last_}); }

Result<void> Membership::open(const protocol::SessionInfo& info) {
  const std::string inbox = std::string(protocol::kInbox) + "/" + sid_.text;
  if (!share_.make_folder(inbox)) {
    // Making a folder again does no harm, whether it was made or not.
    if (auto made = share_.make_folder(inbox); !made) return made;
  }
  if (auto made = share_.make_file(protocol::kBeats, beat_name()); !made) {
    // An error on a name of our own can mean that only the reply was lost.
    const auto beats = list_beats(share_, Freshness::forced);
    if (!beats || find_session(*beats, sid_).none()) return made;
  }
  if (auto made = share_.publish_file(protocol::kSessions, sid_.text, protocol::to_text(info)); !made) {
    const auto here = is_registered();
    if (!here || !*here) return made;
  }
  return {};
}

Membership::Beat Membership::beat(bool lease_over) {
  const LeaseTime began = clock_.lease_now();
  const BeatNumber next = protocol::next_beat(last_);
  Beat out;
  out.before = clock_.wall();
  const auto renamed = share_.rename(protocol::kBeats, beat_name(), protocol::format(BeatEntry{sid_, next}));
  out.after = clock_.wall();
  if (!not_before_) not_before_ = began;
  if (!renamed) return decide(renamed.error(), lease_over);
  out.fate = Fate::confirmed;
  out.began = began;
  out.timed = true;
  last_ = next;
  not_before_.reset();
  unseen_ = 0;
  return out;
}

Membership::Beat Membership::decide(const Error& error, bool lease_over) {
  const LeaseTime looked = clock_.lease_now();
  const auto beats = list_beats(share_, Freshness::forced);
  if (!beats) return unknown(describe(error) + "; then " + describe(beats.error()));
  const Sighting own = find_session(*beats, sid_);
  const BeatNumber next = protocol::next_beat(last_);
  if (own.dead) return broken_by_peer();
  if (!own.beat) return decide_unseen(error, lease_over);
  unseen_ = 0;
  if (*own.beat < last_) return lost(forgot(*own.beat, last_));
  if (*own.beat > next) return lost(fmt::format("its beat was moved to {} by somebody else", own.beat->value));
  if (*own.beat == last_) {
    // Not done yet, but the request may still be on its way: when it is found done later, it was done after this
    // moment.
    not_before_ = looked;
    return unknown(describe(error));
  }
  Beat out;
  out.fate = Fate::confirmed;
  out.began = *not_before_;
  last_ = next;
  not_before_.reset();
  return out;
}

Membership::Beat Membership::decide_unseen(const Error& error, bool lease_over) {
  ++unseen_;
  const auto here = is_registered();
  if (!here) return unknown(describe(error) + "; then " + describe(here.error()));
  if (!*here) return lost("its name in sessions/ is gone: another daemon broke and swept it, or somebody removed it");
  if (lease_over && unseen_ >= kUnseenAtMost)
    return lost("its beat is gone from the share: somebody removed it, or the share forgot it");
  return unknown(describe(error) + "; its beat is not in the listing");
}

std::optional<Membership::Beat> Membership::judge(const std::vector<BeatEntry>& beats) const {
  const Sighting own = find_session(beats, sid_);
  if (own.dead) return broken_by_peer();
  if (own.beat && *own.beat < last_) return lost(forgot(*own.beat, last_));
  return std::nullopt;
}

Result<bool> Membership::is_registered() {
  const auto sessions = list_sessions(share_, Freshness::forced);
  if (!sessions) return tl::unexpected(sessions.error());
  return std::find(sessions->begin(), sessions->end(), sid_) != sessions->end();
}

Result<void> Membership::retire() {
  if (auto dead = rename_to_dead(share_, sid_, last_); !dead) {
    const auto beats = list_beats(share_, Freshness::forced);
    if (!beats) return tl::unexpected(beats.error());
    const Sighting own = find_session(*beats, sid_);
    if (own.beat && !own.dead) {
      last_ = *own.beat;
      return dead;
    }
  }
  return remove_session_names(share_, sid_);
}

}  // namespace latchfs::engine
