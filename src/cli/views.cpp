#include "cli/views.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <tuple>

namespace latchfs::cli {
namespace {

Cell end_cell(std::uint64_t last) { return last == ByteRange::kMax ? Cell{"EOF", last} : number_cell(last); }

std::vector<Cell> lock_row(const LockView& lock, const Sessions& sessions) {
  const protocol::Claim& claim = lock.entry.claim;
  const auto session = sessions.find(claim.sid);
  return {text_cell(session == sessions.end() ? "" : host_of(session->second)),
          text_cell(claim.sid.text),
          text_cell(lock_state(lock, sessions)),
          text_cell(claim.space == protocol::Space::flock ? "flock" : "fcntl"),
          text_cell(claim.mode == protocol::Mode::write ? "WRITE" : "READ"),
          number_cell(claim.range.first),
          end_cell(claim.range.last),
          number_cell(claim.file.value),
          time_cell(claim.ticket.value)};
}

Cell age_cell(const SessionView& session, WallTime now) {
  if (session.dead || !session.beaten) return {"-"};
  const double seconds = std::chrono::duration<double>(now - *session.beaten).count();
  const double shown = std::round(std::max(0.0, seconds) * 10) / 10;  // the server's clock may be ahead
  return {fmt::format("{:.1f}s", shown), shown};
}

std::vector<Cell> session_row(const SessionId& sid, const SessionView& session, const protocol::LeaseTimes& times,
                              WallTime now) {
  const bool has_beat = session.beat && !session.dead;
  const std::int64_t started = std::max<std::int64_t>(0, session.info.started_us);
  return {text_cell(host_of(session)),
          text_cell(sid.text),
          text_cell(session_state(session, times, now)),
          has_beat ? number_cell(session.beat->value) : Cell{"-"},
          age_cell(session, now),
          session.info.pid != 0 ? number_cell(session.info.pid) : Cell{"-"},
          text_cell(session.info.version),
          text_cell(session.info.mountpoint),
          time_cell(static_cast<std::uint64_t>(started))};
}

}  // namespace

Report locks_report(const Snapshot& snapshot) {
  std::vector<LockView> locks = snapshot.locks;
  const auto key = [](const LockView& lock) {
    const protocol::Claim& c = lock.entry.claim;
    return std::tuple(c.file, c.space, c.range, c.ticket, c.sid, c.seq);
  };
  std::sort(locks.begin(), locks.end(), [&](const LockView& a, const LockView& b) { return key(a) < key(b); });
  Report report{"locks",
                {{"HOST"},
                 {"SESSION"},
                 {"STATE"},
                 {"SPACE"},
                 {"MODE"},
                 {"START", true},
                 {"END", true},
                 {"FILEID", true},
                 {"REQUESTED"}},
                {}};
  for (const LockView& lock : locks) report.rows.push_back(lock_row(lock, snapshot.sessions));
  return report;
}

Report sessions_report(const Snapshot& snapshot, WallTime now) {
  Report report{"sessions",
                {{"HOST"},
                 {"SESSION"},
                 {"STATE"},
                 {"BEAT", true},
                 {"AGE", true},
                 {"PID", true},
                 {"VERSION"},
                 {"MOUNTPOINT"},
                 {"STARTED"}},
                {}};
  for (const auto& [sid, session] : snapshot.sessions)
    report.rows.push_back(session_row(sid, session, snapshot.times, now));
  std::stable_sort(report.rows.begin(), report.rows.end(),
                   [](const auto& a, const auto& b) { return a[0].text < b[0].text; });
  return report;
}

}  // namespace latchfs::cli
