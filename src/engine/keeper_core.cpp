#include "engine/keeper_core.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "engine/session_info_local.hpp"
#include "engine/session_names.hpp"
#include "engine/sweeper.hpp"
#include "latchfs/base/duration.hpp"
#include "latchfs/protocol/layout.hpp"

// The beat thread. It waits for nothing but its own share calls: sweeping and learn() run elsewhere.
namespace latchfs::engine {
namespace {

using share::Freshness;

constexpr std::size_t kMaxFormat = 4096;

}  // namespace

KeeperCore::KeeperCore(share::Share& share, const Clock& clock, EventSink& events, Lease& lease,
                       protocol::LeaseTimes times, const SessionKeeper::Identity& identity)
    : clock_(clock),
      events_(events),
      lease_(lease),
      times_(times),
      identity_(identity),
      beat_share_(share, beat_gate_),
      sweep_share_(share, sweep_gate_),
      call_share_(share, call_gate_),
      peers_(clock, times),
      local_(local_session_info(clock, identity.host_id, identity.mountpoint)),
      share_time_(clock) {}

Result<void> KeeperCore::begin(SessionListener& listener) {
  listener_ = &listener;
  if (const auto beats = peers_.look_at_beats(beat_share_, Freshness::forced); !beats) {
    return tl::unexpected(beats.error());
  }
  if (const auto sessions = peers_.look_at_sessions(beat_share_, Freshness::forced); !sessions) {
    return tl::unexpected(sessions.error());
  }
  local_.read_infos(beat_share_, peers_.live());
  local_.break_gone(beat_share_, peers_, events_);
  if (auto opened = open_session(); !opened) {
    sweep_round();
    return opened;
  }
  announce_deaths();
  return {};
}

Result<void> KeeperCore::open_session() {
  auto member = std::make_unique<Membership>(beat_share_, clock_);
  const SessionId sid = member->sid();
  peers_.set_self(sid);
  Membership::Beat beat;
  auto opened = member->open(local_session_info(clock_, identity_.host_id, identity_.mountpoint));
  if (opened) opened = first_beat(*member, beat);
  if (opened) opened = check_times();
  if (opened) measure(*member, beat);
  if (opened && !confirm(beat.began, sid)) opened = fail(Errc::cancelled, "the session ends");
  if (!opened) {
    peers_.set_self(SessionId{});
    leave_to_sweep(sid);
    return opened;
  }
  member_ = std::move(member);
  in_trouble_ = false;
  said_expired_ = false;
  events_.log(Level::info, "session {} is open (beat {}, fence_after {}, break_after {})", sid.text,
              format_duration(times_.beat), format_duration(times_.fence_after), format_duration(times_.break_after));
  listener_->on_joined(sid);
  return {};
}

Result<void> KeeperCore::first_beat(Membership& member, Membership::Beat& beat) {
  const auto give_up = Steady::now() + times_.fence_after;
  for (;;) {
    beat = member.beat(true);
    if (beat.fate == Membership::Fate::confirmed) return {};
    if (beat.fate == Membership::Fate::lost || Steady::now() > give_up) {
      return fail(Errc::no_locks, "the first beat of the session failed: " + beat.why);
    }
    if (!wait_until(Steady::now() + retry_interval())) return fail(Errc::cancelled, "the session ends");
  }
}

/// The lease times may be changed while no session is there. Our names stand now, so whoever wants to change them after
/// this sees us; and whoever did it before has left another format, or none while it is being replaced.
Result<void> KeeperCore::check_times() {
  const auto text = beat_share_.read_file("", protocol::kFormatFile, kMaxFormat);
  if (!text) return tl::unexpected(text.error());
  const auto format = protocol::parse_format(*text);
  if (!format) return tl::unexpected(format.error());
  if (format->times == times_) return {};
  return fail(Errc::refused, "the lease times of the share were changed: mount it again");
}

bool KeeperCore::confirm(LeaseTime began, const SessionId& sid) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || disowned_ == sid) return false;
  lease_.confirm(began, times_.fence_after);
  current_ = sid;
  return true;
}

void KeeperCore::run_beat() {
  try {
    beat_loop();
  } catch (const Abandoned&) {
    // Nobody waits for this thread any more.
  }
  beat_gate_.finish();
}

void KeeperCore::beat_loop() {
  auto next = Steady::now() + times_.beat;
  while (wait_until(next)) {
    const auto began = Steady::now();
    const bool settled = member_ ? beat_once() : rejoin();
    announce_deaths();
    if (settled) poke_sweep();
    next = settled ? began + times_.beat : Steady::now() + retry_interval();
  }
  close_session();
}

/// Announces deaths as they become known meanwhile. False: the keeper stops.
bool KeeperCore::wait_until(Steady::time_point when) {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_until(lock, when, [&] { return stopping_ || news_ || (member_ && disowned_ == member_->sid()); });
      if (stopping_) return false;
      if (!std::exchange(news_, false)) return true;
    }
    announce_deaths();
  }
}

bool KeeperCore::disowned() const {
  const std::lock_guard lock(mutex_);
  return member_ && disowned_ == member_->sid();
}

bool KeeperCore::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

Nanos KeeperCore::retry_interval() const {
  constexpr Nanos kShortest = std::chrono::milliseconds(10);
  constexpr Nanos kLongest = std::chrono::seconds(1);
  return std::clamp<Nanos>(times_.beat / 5, kShortest, kLongest);
}

bool KeeperCore::rejoin() {
  const auto opened = open_session();
  if (opened) {
    said_no_rejoin_ = false;
    return true;
  }
  if (!std::exchange(said_no_rejoin_, true) && !stopping()) {
    events_.log(Level::error, "no new session can be opened, so no locks can be given; trying on: {}",
                describe(opened.error()));
  }
  return false;
}

/// True: the next beat is due at its usual time.
bool KeeperCore::beat_once() {
  if (disowned()) {
    Membership::Beat fate;
    fate.why = "the share forgot a confirmed claim of it (an NFS export must be `sync`; was a backup put back?)";
    lose(fate);
    return false;
  }
  const bool lease_over = !lease_.valid();
  const Membership::Beat beat = member_->beat(lease_over);
  if (beat.fate == Membership::Fate::lost) {
    lose(beat);
    return false;
  }
  if (beat.fate == Membership::Fate::unknown) {
    note_trouble(beat.why);
    return false;
  }
  if (!confirm(beat.began, member_->sid())) return false;
  if (std::exchange(in_trouble_, false)) events_.log(Level::info, "beats are confirmed again: nothing was lost");
  said_expired_ = false;
  listener_->on_beat(lease_over);
  look_around();
  if (!member_) return false;
  measure(*member_, beat);
  return lease_.valid();
}

void KeeperCore::note_trouble(const std::string& why) {
  if (!std::exchange(in_trouble_, true)) events_.log(Level::warning, "a beat failed, trying on: {}", why);
  if (lease_.valid() || std::exchange(said_expired_, true)) return;
  events_.log(Level::error, "the lease ran out: no locks are given until a beat is confirmed ({})", why);
}

void KeeperCore::lose(const Membership::Beat& beat) {
  const SessionId sid = member_->sid();
  {
    const std::lock_guard lock(mutex_);
    current_.reset();
    lease_.end();
  }
  std::string reason = beat.why;
  if (beat.by_peer) {
    std::vector<std::string> names;
    for (const SessionId& peer : peers_.live()) names.push_back(local_.name_of(peer));
    if (!names.empty()) reason += fmt::format(" (one of: {})", fmt::join(names, ", "));
  }
  events_.log(Level::error, "session {} is lost, and every lock of it: {}", sid.text, reason);
  member_.reset();
  peers_.set_self(SessionId{});
  peers_.mark_dead(sid);
  listener_->on_lost(sid, reason);
  leave_to_sweep(sid);
}

void KeeperCore::look_around() {
  auto beats = peers_.look_at_beats(beat_share_, Freshness::own_change);
  if (!beats) return;
  if (auto fate = member_->judge(*beats)) {
    // The end of a session hangs on this, so it takes a second look to be sure that the first was not a stale one.
    beats = peers_.look_at_beats(beat_share_, Freshness::forced);
    if (beats) fate = member_->judge(*beats);
    if (fate && beats) lose(*fate);
    return;
  }
  if (peers_.wants_sessions()) {
    const auto sessions = peers_.look_at_sessions(beat_share_, Freshness::forced);
    const bool own_missing =
        sessions && std::find(sessions->begin(), sessions->end(), member_->sid()) == sessions->end();
    if (own_missing) {
      Membership::Beat fate;
      fate.why = "its name in sessions/ is gone: another daemon broke and swept it, or somebody removed it";
      return lose(fate);
    }
  }
  break_stale(*beats);
}

/// `beats` is the listing of a moment ago: a break needs one that still shows the very beat.
void KeeperCore::break_stale(const std::vector<protocol::BeatEntry>& beats) {
  for (const auto& stale : peers_.breakable()) {
    const Sighting seen = find_session(beats, stale.sid);
    if (seen.dead || seen.beat != stale.beat) continue;
    if (!lease_.valid()) return;
    const auto broken = rename_to_dead(beat_share_, stale.sid, stale.beat);
    if (!broken)
      continue;  // it beat after all, or another was first; if only the reply was lost, the next listing says so
    peers_.mark_dead(stale.sid);
    events_.log(Level::warning, "session {} of {} was broken: no beat for {}", stale.sid.text,
                local_.name_of(stale.sid), format_duration(times_.break_after));
  }
}

void KeeperCore::announce_deaths() {
  for (const SessionId& sid : peers_.take_deaths()) {
    poke_sweep();
    listener_->on_peer_dead(sid);
  }
}

/// Own beats are stamped by the server's clock, which all tickets follow.
void KeeperCore::measure(const Membership& member, const Membership::Beat& beat) {
  if (!beat.timed) return;
  const auto facts = beat_share_.facts(protocol::kBeats, member.beat_name());
  if (facts) share_time_.measured(beat.before, beat.after, facts->changed);
}

void KeeperCore::close_session() {
  bool closed = true;
  if (member_) {
    for (;;) {
      const auto retired = member_->retire();
      closed = retired.has_value();
      const auto again = Steady::now() + retry_interval();
      std::unique_lock lock(mutex_);
      if (closed || again > stop_deadline_) break;
      wake_.wait_until(lock, again, [] { return false; });
    }
    if (closed) events_.log(Level::info, "session {} is closed", member_->sid().text);
  }
  std::set<SessionId> rest;
  {
    const std::lock_guard lock(mutex_);
    rest = own_dead_;
  }
  if (!rest.empty()) closed = sweep(beat_share_, rest) && closed;
  const std::lock_guard lock(mutex_);
  clean_ = closed;
}

}  // namespace latchfs::engine
