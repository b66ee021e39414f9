#include "claim_world.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace latchfs::sim {

using namespace std::chrono_literals;
using engine::FileLocks;
using protocol::Mode;
using protocol::Space;

World::World(std::uint64_t seed, Options options) : random_(seed), options_(options) {
  for (int h = 0; h < options.hosts; ++h) {
    Host host;
    host.id = h;
    host.sid = SessionId{fmt::format("{:020x}", pick(1000) * 10 + static_cast<std::uint64_t>(h))};
    host.locks = std::make_unique<FileLocks>(FileId{7}, protocol::QueuePolicy::writer_first, 1h);
    for (int o = 0; o < options.owners; ++o) {
      Program program;
      program.owner = LockOwner{static_cast<std::uint64_t>(o + 1)};
      program.handle = std::make_shared<HandleFence>(HandleId{static_cast<std::uint64_t>(o + 1)});
      host.programs.push_back(std::move(program));
    }
    hosts_.push_back(std::move(host));
  }
}

void World::broken(const std::string& what) const {
  std::string text = what + "\n";
  const std::size_t from = story_.size() > 80 ? story_.size() - 80 : 0;
  for (std::size_t i = from; i < story_.size(); ++i) text += "  " + story_[i] + "\n";
  for (const std::string& name : folder_.names()) text += "  on the share: " + name + "\n";
  throw std::runtime_error(text);
}

// Tickets come from the clocks of hosts and threads: close together they are in no order.
FileLocks::Now World::now() { return {ObserveTime(time_), 0, Ticket{++next_ticket_ * 4 + pick(24)}}; }

void World::deliver(FileLocks::Answers& answers) {
  for (FileLocks::Answer& answer : std::exchange(answers, {})) answer.done(answer.result);
}

void World::check_conflicts(const Host& host, const Program& program, const LockCall& call) const {
  const int space = call.space == Space::flock ? 1 : 0;
  for (const Host& other : hosts_) {
    for (const Program& rival : other.programs) {
      if (&rival == &program) continue;
      for (const auto& [byte, mode] : rival.held[space]) {
        const bool common = byte >= call.range.first && byte <= call.range.last;
        if (common && (mode == Mode::write || call.mode == Mode::write)) {
          broken(fmt::format("two holders of byte {}: host {} owner {} and host {} owner {}", byte, host.id, program.owner.value, other.id,
                             rival.owner.value));
        }
      }
    }
  }
}

void World::granted(Host& host, Program& program, const LockCall& call) {
  check_conflicts(host, program, call);
  auto& held = program.held[call.space == Space::flock ? 1 : 0];
  for (std::uint64_t byte = call.range.first; byte <= std::min(call.range.last, kBytes); ++byte) held[byte] = call.mode;
}

// A program can rely on no more than what it has left from the call on: a conversion of a flock may lose the old lock, and a downgrade
// is in force before it is answered.
void World::weaken(Program& program, const LockCall& call) const {
  auto& held = program.held[call.space == Space::flock ? 1 : 0];
  std::uint64_t covered = 0;
  for (const auto& [byte, mode] : held) covered += byte >= call.range.first && byte <= call.range.last ? 1 : 0;
  const bool all = covered == std::min(call.range.last, kBytes) - call.range.first + 1;
  if (call.space == Space::flock && (!all || (call.mode == Mode::write && held.begin()->second == Mode::read))) held.clear();
  if (!all || call.mode == Mode::write) return;
  for (auto& [byte, mode] : held) {
    if (byte >= call.range.first && byte <= call.range.last) mode = Mode::read;
  }
}

void World::request(Host& host, Program& program) {
  LockCall call;
  call.file = FileId{7};
  call.handle = program.handle;
  call.owner = program.owner;
  call.space = pick(4) == 0 ? Space::flock : Space::posix;
  call.mode = pick(2) == 0 ? Mode::read : Mode::write;
  if (call.space == Space::posix) {
    call.range.first = pick(kBytes);
    call.range.last = call.range.first + pick(kBytes - call.range.first);
  }
  const bool holds = !program.held[0].empty() || !program.held[1].empty();
  call.wait = pick(2) == 0 && (!holds || options_.waiting_upgrades);
  const WaiterId id{next_waiter_++};
  story_.push_back(fmt::format("host {} owner {} asks #{} {}{} {}-{} {}", host.id, program.owner.value, id.value,
                               static_cast<char>(call.space), static_cast<char>(call.mode), call.range.first, call.range.last,
                               call.wait ? "waits" : "tries"));
  weaken(program, call);
  program.waiting = id;
  program.call = call;
  FileLocks::Answers answers;
  host.locks->lock(id, call, [this, &host, &program, call, id](const Result<void>& result) {
    story_.push_back(fmt::format("host {} owner {} #{}: {}", host.id, program.owner.value, id.value, result ? "granted" : describe(result.error())));
    program.waiting.reset();
    if (result) granted(host, program, call);
  }, now(), answers);
  deliver(answers);
}

void World::release(Host& host, Program& program, ByteRange range, Space space) {
  story_.push_back(fmt::format("host {} owner {} lets go of {} {}-{}", host.id, program.owner.value, static_cast<char>(space), range.first, range.last));
  std::erase_if(program.held[space == Space::flock ? 1 : 0],
                [&](const auto& entry) { return entry.first >= range.first && entry.first <= range.last; });
  LockCall call;
  call.handle = program.handle;
  call.owner = program.owner;
  call.space = space;
  call.range = range;
  program.releasing = true;
  FileLocks::Answers answers;
  host.locks->unlock(WaiterId{next_waiter_++}, call, [&program](const Result<void>&) { program.releasing = false; }, answers);
  deliver(answers);
}

void World::act(Host& host, Program& program, bool only_release) {
  if (program.releasing) return;
  if (program.waiting) {
    if (only_release && !options_.waiting_upgrades) return;
    if (!only_release && pick(20) != 0) return;
    FileLocks::Answers answers;
    host.locks->cancel(*program.waiting, answers);
    deliver(answers);
    return;
  }
  if (!only_release && pick(3) != 0) return request(host, program);
  for (const Space space : {Space::posix, Space::flock}) {
    if (program.held[space == Space::flock ? 1 : 0].empty()) continue;
    const std::uint64_t first = only_release || space == Space::flock ? 0 : pick(kBytes);
    const std::uint64_t last = only_release || space == Space::flock || pick(2) == 0 ? ByteRange::kMax : first + pick(4);
    return release(host, program, {first, last}, space);
  }
}

// Done or not, and what the caller is told of it: an error can come before or after the effect.
Result<void> World::outcome(bool done, int already) {
  if (static_cast<int>(pick(100)) < options_.faults) return fail_errno(EIO);
  return done ? Result<void>() : fail_errno(already);
}

// One small step of the host's round; false when there was nothing to do.
bool World::step(Host& host) {
  if (!host.in_round) {
    FileLocks::Answers answers;
    host.round = host.locks->begin_round(host.sid, [&] { return Seq{host.next_seq++}; }, ObserveTime(time_), answers);
    deliver(answers);
    if (host.round.empty()) return false;
    host.in_round = true;
    host.result = {};
    return true;
  }
  const auto skipped = [&] { return options_.faults > 0 && static_cast<int>(pick(100)) < options_.faults; };
  if (const std::size_t i = host.result.published.size(); i < host.round.publish.size()) {
    const std::string name = protocol::format(host.round.publish[i]);
    host.result.published.push_back(skipped() ? Result<void>(fail_errno(EIO)) : outcome(folder_.add(name), EEXIST));
  } else if (const std::size_t j = host.result.removed.size(); j < host.round.remove.size()) {
    const std::string name = protocol::format(host.round.remove[j]);
    host.result.removed.push_back(skipped() ? Result<void>(fail_errno(EIO)) : outcome(folder_.remove(name), ENOENT));
  } else if (host.round.list && !host.listing) {
    folder_.begin_listing(host.id);
    host.listing = true;
  } else if (!host.listing || pick(4) == 0) {  // a listing takes its time
    finish_round(host);
  }
  return true;
}

void World::finish_round(Host& host) {
  if (host.listing) {
    host.listing = false;
    const std::vector<std::string> names = folder_.end_listing(host.id, random_);
    if (static_cast<int>(pick(100)) < options_.faults) {
      host.result.listing = fail_errno(EIO);
    } else {
      host.result.listing = protocol::judge(names, FileId{7}, host.sid, peers_);
    }
  }
  host.in_round = false;
  FileLocks::Answers answers;
  FileLocks::Finished finished = host.locks->end_round(host.round, host.result, peers_, true, ObserveTime(time_), answers);
  deliver(answers);
  deliver(finished.granted);
  if (finished.share_forgot) broken(fmt::format("host {} believes that the share forgot a claim", host.id));
}

void World::run(int steps) {
  for (int i = 0; i < steps; ++i) {
    Host& host = hosts_[pick(hosts_.size())];
    switch (pick(8)) {
      case 0: act(host, host.programs[pick(host.programs.size())], false); break;
      case 1: time_ += Nanos(static_cast<Nanos::rep>(pick(20'000'000))); break;
      default: step(host);
    }
  }
  settle();
  drain();
}

// Nobody lets go of anything: every try and every release must be answered all the same.
void World::settle() {
  const auto open = [](const Program& program) { return (program.waiting && !program.call.wait) || program.releasing; };
  for (int i = 0; i < 5000; ++i) {
    bool busy = false;
    for (Host& host : hosts_) {
      step(host);
      for (const Program& program : host.programs) busy = busy || open(program);
    }
    if (!busy) return;
    time_ += 1ms;
  }
  broken("a try or a release is not answered");
}

// All programs let go of what they hold as soon as they can; then every request must be answered and no name be left.
void World::drain() {
  for (int i = 0; i < 200000; ++i) {
    bool busy = false;
    for (Host& host : hosts_) {
      for (Program& program : host.programs) {
        act(host, program, true);
        busy = busy || program.waiting || program.releasing;
      }
      if (step(host)) busy = true;
      busy = busy || !host.locks->idle();
    }
    if (!busy) {
      if (!folder_.names().empty()) broken("names are left though nobody holds or wants anything");
      return;
    }
    if (pick(4) == 0) time_ += 5ms;
  }
  broken("somebody waits for ever though nobody holds anything");
}

}  // namespace latchfs::sim
