#include "latchfs/protocol/peer_table.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>

using namespace latchfs;
using namespace latchfs::protocol;

// The table against a model that keeps the whole history and answers every question by reading it again.
namespace {

using ms = std::chrono::milliseconds;
const LeaseTimes kTimes{ms(100), ms(400), ms(500)};
const SessionId kSelf{"self0000000000000000"};

SessionId peer(int i) { return SessionId{std::string(20, static_cast<char>('a' + i))}; }

struct Listing {
  std::vector<BeatEntry> beats;
  ObserveTime ended;
};

class History {
 public:
  void beats(Listing listing) { listings_.push_back(std::move(listing)); }
  void sessions(const std::set<SessionId>& present) {
    for (const SessionId& sid : ever_seen()) {
      const bool opening = shown(sid) && registered_.count(sid) == 0 && !said_dead(sid);
      if (present.count(sid) == 0 && !opening) gone_.insert(sid);
    }
    for (const SessionId& sid : present) {
      if (sid != kSelf && gone_.count(sid) == 0) registered_.insert(sid);
    }
  }
  void mark(const SessionId& sid) { marked_.insert(sid); }

  bool is_void(const SessionId& sid) const { return gone_.count(sid) != 0 || said_dead(sid); }

  /// Counted silence up to now: the sum of the gaps back to the listing in which its present beat first showed.
  Nanos silence(const SessionId& sid) const {
    Nanos sum{0};
    const auto now = last_shown_beat(sid, listings_.size());
    for (std::size_t i = listings_.size(); i-- > 1;) {
      const auto before = last_shown_beat(sid, i);
      if (before != now) break;
      sum += std::clamp<Nanos>(listings_[i].ended - listings_[i - 1].ended, Nanos{0}, 2 * kTimes.beat);
    }
    return sum;
  }
  bool silent(const SessionId& sid) const {
    return shown(sid) && last_shown_beat(sid, listings_.size()) && silence(sid) >= kTimes.break_after;
  }

 private:
  static std::optional<BeatNumber> beat_in(const Listing& listing, const SessionId& sid) {
    std::optional<BeatNumber> highest;
    for (const BeatEntry& e : listing.beats) {
      if (e.sid == sid && e.beat && (!highest || *highest < *e.beat)) highest = e.beat;
    }
    return highest;
  }
  /// The beat of the last of the first `n` listings that shows one.
  std::optional<BeatNumber> last_shown_beat(const SessionId& sid, std::size_t n) const {
    for (std::size_t i = n; i-- > 0;) {
      if (const auto beat = beat_in(listings_[i], sid)) return beat;
    }
    return std::nullopt;
  }
  bool shown(const SessionId& sid) const {
    if (listings_.empty()) return false;
    const auto& beats = listings_.back().beats;
    return std::any_of(beats.begin(), beats.end(), [&](const BeatEntry& e) { return e.sid == sid; });
  }
  bool said_dead(const SessionId& sid) const {
    if (marked_.count(sid) != 0) return true;
    for (const Listing& l : listings_) {
      if (std::any_of(l.beats.begin(), l.beats.end(), [&](const BeatEntry& e) { return e.sid == sid && !e.beat; })) {
        return true;
      }
    }
    return false;
  }
  std::set<SessionId> ever_seen() const {
    std::set<SessionId> all = marked_;
    all.insert(registered_.begin(), registered_.end());
    for (const Listing& l : listings_) {
      for (const BeatEntry& e : l.beats) all.insert(e.sid);
    }
    all.erase(kSelf);
    return all;
  }

  std::vector<Listing> listings_;
  std::set<SessionId> registered_, gone_, marked_;
};

std::vector<BeatEntry> some_listing(std::map<SessionId, std::uint64_t>& beat_of) {
  std::vector<BeatEntry> beats;
  for (int i = 0; i < 4; ++i) {
    std::uint64_t& n = beat_of[peer(i)];
    switch (*rc::gen::weightedElement<int>({{10, 0}, {3, 1}, {2, 2}, {1, 3}, {1, 4}})) {
      case 0: beats.push_back({peer(i), BeatNumber{n}}); break;    // stands still
      case 1: beats.push_back({peer(i), BeatNumber{++n}}); break;  // has beaten
      case 2: break;                                               // missed by the listing
      case 3:                                                      // under both names
        beats.push_back({peer(i), BeatNumber{n + 1}});
        beats.push_back({peer(i), BeatNumber{n}});
        ++n;
        break;
      default: beats.push_back({peer(i), BeatNumber{n > 0 ? --n : n}}); break;  // put back
    }
  }
  if (*rc::gen::inRange(0, 40) == 0) beats.push_back({peer(*rc::gen::inRange(0, 4)), std::nullopt});
  beats.push_back({kSelf, BeatNumber{1}});
  return beats;
}

}  // namespace

TEST_CASE("the peer table says what the whole history says") {
  CHECK(rc::check([] {
    PeerTable table(kSelf, kTimes);
    History history;
    std::map<SessionId, std::uint64_t> beat_of;
    ObserveTime now{ms(1000)};
    bool sessions_fed = false;
    const int steps = *rc::gen::inRange(1, 60);
    for (int step = 0; step < steps; ++step) {
      now += ms(*rc::gen::weightedElement<int>({{10, 100}, {3, 90}, {2, 150}, {1, 100'000}, {1, 0}}));
      Listing listing{some_listing(beat_of), now};
      table.feed_beats(listing.beats, now);
      history.beats(std::move(listing));
      if (*rc::gen::inRange(0, 15) == 0) {
        std::set<SessionId> present{kSelf};
        for (int i = 0; i < 4; ++i) {
          if (*rc::gen::inRange(0, 12) != 0) present.insert(peer(i));
        }
        table.feed_sessions({present.begin(), present.end()});
        history.sessions(present);
        sessions_fed = true;
      }
      if (*rc::gen::inRange(0, 60) == 0) {
        const SessionId victim = peer(*rc::gen::inRange(0, 4));
        table.mark_dead(victim);
        history.mark(victim);
      }
      const auto breakable = table.breakable();
      for (int i = 0; i < 4; ++i) {
        const SessionId sid = peer(i);
        RC_ASSERT(table.is_void(sid) == history.is_void(sid));
        if (table.is_known(sid)) RC_ASSERT_FALSE(history.is_void(sid));
        const bool may = std::any_of(breakable.begin(), breakable.end(), [&](const auto& s) { return s.sid == sid; });
        // What was void and forgotten and shows again is counted from there; the model counts all of its silence.
        if (may) RC_ASSERT(history.silent(sid));
        if (!history.is_void(sid)) RC_ASSERT(may == history.silent(sid));
      }
    }
    RC_TAG(sessions_fed ? "with sessions" : "beats only");
  }));
}
