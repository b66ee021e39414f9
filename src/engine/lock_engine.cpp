#include "latchfs/engine/lock_engine.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/executor.hpp"
#include "engine/file_locks.hpp"
#include "engine/round_runner.hpp"

/// How it hangs together. Each file has one mutex and at most one round under way. A call changes the file's FileLocks under its mutex and then makes sure that a
/// round runs; the round's steps on the share are made by an executor thread without any mutex. Answers are delivered when no mutex is
/// held. Mutex order: the map of files before a file; never both across a share call or an answer.
namespace latchfs::engine {
namespace {

// Rounds of this many files can be on the share at once. A round holds its thread for some round trips; waiting requests hold none.
constexpr unsigned kThreads = 16;

void deliver(FileLocks::Answers& answers) {
  for (FileLocks::Answer& answer : std::exchange(answers, {})) answer.done(answer.result);
}

}  // namespace

struct LockEngine::Impl {
  struct File {
    File(FileId file_id, protocol::QueuePolicy policy, Nanos patience) : id(file_id), locks(file_id, policy, patience) {}
    const FileId id;
    std::mutex mutex;
    FileLocks locks;
    std::shared_ptr<FileData> data;
    std::uint64_t session = 0;  ///< counts the sessions this file has lost: a round of an older one is void
    bool running = false;       ///< a round is under way or posted
    bool again = false;         ///< something changed meanwhile
    bool retired = false;       ///< no longer in the map
  };
  using FilePtr = std::shared_ptr<File>;

  Impl(const Parts& given, const protocol::LeaseTimes& lease_times, protocol::QueuePolicy queue)
      : parts(given), times(lease_times), policy(queue), runner(given.share, given.session, given.events),
        executor(kThreads, "lfs-lock") {}

  // ---- files
  template <class Change>
  void change(FileId id, const std::shared_ptr<FileData>& data, Change&& action);
  bool change_known(FileId id, const std::function<void(FileLocks&, FileLocks::Answers&)>& action);
  std::vector<FilePtr> all_files();
  void retire(const FilePtr& file);
  // ---- rounds; the file's mutex is held in the first two
  void kick(const FilePtr& file);
  void rest(const FilePtr& file);
  void run(const FilePtr& file);
  bool run_once(const FilePtr& file);
  void finish(const FilePtr& file, std::uint64_t session, FileData& data, FileLocks::Finished finished);
  FileLocks::Now now();
  /// Keeps the file of an unanswered request for cancel(); the answer forgets it.
  Done remember(WaiterId id, FileId file, Done done);

  const Parts parts;
  const protocol::LeaseTimes times;
  const protocol::QueuePolicy policy;
  RoundRunner runner;
  std::atomic<std::uint64_t> next_id{1};
  std::atomic<std::uint64_t> next_seq{1};
  std::atomic<bool> stopping{false};

  std::mutex files_mutex;
  std::unordered_map<FileId, FilePtr> files;
  std::condition_variable files_gone;
  std::mutex waiting_mutex;
  std::unordered_map<WaiterId, FileId> waiting;  ///< requests and releases not answered yet
  Executor executor;  // last: its threads use all of the above
};

FileLocks::Now LockEngine::Impl::now() {
  const auto wall = std::chrono::duration_cast<std::chrono::microseconds>(parts.clock.wall().time_since_epoch());
  return {parts.clock.observe_now(), wall.count(), parts.session.next_ticket()};
}

LockService::Done LockEngine::Impl::remember(WaiterId id, FileId file, Done done) {
  {
    const std::lock_guard lock(waiting_mutex);
    waiting.emplace(id, file);
  }
  return [this, id, done = std::move(done)](Result<void> result) {
    {
      const std::lock_guard lock(waiting_mutex);
      waiting.erase(id);
    }
    done(std::move(result));
  };
}

// Finds or makes the file, lets `action` change it, and sees to it that a round follows.
template <class Change>
void LockEngine::Impl::change(FileId id, const std::shared_ptr<FileData>& data, Change&& action) {
  FileLocks::Answers answers;
  for (bool done = false; !done;) {
    FilePtr file;
    {
      const std::lock_guard lock(files_mutex);
      FilePtr& slot = files[id];
      if (!slot) slot = std::make_shared<File>(id, policy, times.fence_after);
      file = slot;
    }
    const std::lock_guard lock(file->mutex);
    if (file->retired) continue;
    if (data) file->data = data;
    action(file->locks, answers);
    kick(file);
    done = true;
  }
  deliver(answers);
}

bool LockEngine::Impl::change_known(FileId id, const std::function<void(FileLocks&, FileLocks::Answers&)>& action) {
  FilePtr file;
  {
    const std::lock_guard lock(files_mutex);
    const auto it = files.find(id);
    if (it == files.end()) return false;
    file = it->second;
  }
  FileLocks::Answers answers;
  {
    const std::lock_guard lock(file->mutex);
    if (file->retired) return false;
    action(file->locks, answers);
    kick(file);
  }
  deliver(answers);
  return true;
}

std::vector<LockEngine::Impl::FilePtr> LockEngine::Impl::all_files() {
  const std::lock_guard lock(files_mutex);
  std::vector<FilePtr> all;
  all.reserve(files.size());
  for (const auto& [id, file] : files) all.push_back(file);
  return all;
}

void LockEngine::Impl::retire(const FilePtr& file) {
  const std::lock_guard map_lock(files_mutex);
  const std::lock_guard lock(file->mutex);
  if (file->running || !file->locks.idle() || file->retired) return;
  file->retired = true;
  files.erase(file->id);
  files_gone.notify_all();
}

void LockEngine::Impl::kick(const FilePtr& file) {
  if (std::exchange(file->running, true)) {
    file->again = true;
  } else {
    executor.post([this, file] { run(file); });
  }
}

void LockEngine::Impl::run(const FilePtr& file) {
  while (run_once(file)) {
  }
  retire(file);
}

// Nothing to do now: come back when the claims want to look again. The file's mutex is held.
void LockEngine::Impl::rest(const FilePtr& file) {
  file->running = false;
  const std::optional<ObserveTime> next = file->locks.next_look();
  if (!next) return;
  const Nanos delay = std::max(*next - parts.clock.observe_now(), Nanos{0});
  executor.post_at(std::chrono::steady_clock::now() + delay, [this, weak = std::weak_ptr<File>(file)] {
    const FilePtr later = weak.lock();
    if (!later) return;
    {
      const std::lock_guard lock(later->mutex);
      if (std::exchange(later->running, true)) return;
    }
    run(later);
  });
}

// One round; false when the file is at rest.
bool LockEngine::Impl::run_once(const FilePtr& file) {
  std::optional<SessionId> self;
  FileLocks::Answers answers;
  protocol::Round round;
  std::shared_ptr<FileData> data;
  std::uint64_t session = 0;
  bool resting = false;
  {
    const std::lock_guard lock(file->mutex);
    file->again = false;
    self = parts.session.current();  // after `again`, so that a session that opens now brings another round
    if (self) {
      const auto new_seq = [this] { return Seq{next_seq.fetch_add(1)}; };
      round = file->locks.begin_round(*self, new_seq, parts.clock.observe_now(), answers);
    }
    data = file->data;
    session = file->session;
    resting = round.empty() && !file->again;
    if (resting) rest(file);
  }
  deliver(answers);
  if (resting) return false;
  if (round.empty()) return true;

  JudgedPeers peers(parts.session);
  const protocol::RoundResult result = runner.run(round, file->id, *self, *data, peers);
  FileLocks::Finished finished;
  {
    const std::lock_guard lock(file->mutex);
    // Names of a session that was lost meanwhile are void; what they showed says nothing about the next one.
    const bool lease_ok = parts.session.lease_valid() && parts.session.current() == self;
    if (file->session == session) {
      finished = file->locks.end_round(round, result, peers, lease_ok, parts.clock.observe_now(), answers);
    }
  }
  deliver(answers);
  finish(file, session, *data, std::move(finished));
  return true;
}

// New claims were granted: what other hosts wrote becomes visible before the programs go on.
void LockEngine::Impl::finish(const FilePtr& file, std::uint64_t session, FileData& data, FileLocks::Finished finished) {
  if (finished.share_forgot) {
    parts.events.log(Level::error, "{}: a lock of this mount is no longer on the share though nobody here let go of it", data.path());
    parts.session.disown();
  }
  if (finished.granted.empty()) return;
  Result<void> usable = data.refresh();
  if (!usable) parts.events.log(Level::error, "{}: data could not be refreshed for a new lock: {}", data.path(), describe(usable.error()));
  {
    const std::lock_guard lock(file->mutex);
    if (file->session != session) {
      usable = fail(Errc::lease_lost);  // the session was lost meanwhile, and the lock with it
    } else if (!usable) {
      for (const LockCall& call : finished.granted_calls) file->locks.take_back(call);
    }
  }
  for (FileLocks::Answer& answer : finished.granted) answer.result = usable;
  deliver(finished.granted);
}

LockEngine::LockEngine(const Parts& parts, const protocol::LeaseTimes& times, protocol::QueuePolicy policy)
    : impl_(std::make_unique<Impl>(parts, times, policy)) {}

LockEngine::~LockEngine() = default;

bool LockEngine::stop(Nanos limit) {
  impl_->stopping = true;
  for (const Impl::FilePtr& file : impl_->all_files()) {
    FileLocks::Answers answers;
    {
      const std::lock_guard lock(file->mutex);
      file->locks.close(answers);
      impl_->kick(file);
    }
    deliver(answers);
  }
  std::unique_lock lock(impl_->files_mutex);
  const bool clean = impl_->files_gone.wait_for(lock, limit, [this] { return impl_->files.empty(); });
  lock.unlock();
  impl_->executor.stop();
  return clean;
}

WaiterId LockEngine::next_id() { return WaiterId{impl_->next_id.fetch_add(1)}; }

void LockEngine::lock(WaiterId id, LockCall call, Done done) {
  if (impl_->stopping) {
    done(fail(Errc::no_locks));
    return;
  }
  const FileId file = call.file;
  Done forget = impl_->remember(id, file, std::move(done));
  const std::shared_ptr<FileData> data = call.data;
  const FileLocks::Now now = impl_->now();
  impl_->change(file, data, [&](FileLocks& locks, FileLocks::Answers& answers) {
    locks.lock(id, std::move(call), std::move(forget), now, answers);
  });
}

void LockEngine::unlock(WaiterId id, LockCall call, Done done) {
  Done forget = impl_->remember(id, call.file, std::move(done));
  const bool known = impl_->change_known(call.file, [&](FileLocks& locks, FileLocks::Answers& answers) {
    locks.unlock(id, call, std::move(forget), answers);
  });
  if (!known) forget(call.handle->lost() ? fail(Errc::lease_lost) : Result<void>());
}

bool LockEngine::cancel(WaiterId id) {
  FileId file;
  {
    const std::lock_guard lock(impl_->waiting_mutex);
    const auto it = impl_->waiting.find(id);
    if (it == impl_->waiting.end()) return false;
    file = it->second;
  }
  bool cancelled = false;
  impl_->change_known(file, [&](FileLocks& locks, FileLocks::Answers& answers) { cancelled = locks.cancel(id, answers); });
  return cancelled;
}

void LockEngine::drop_owner(FileId file, LockOwner owner, Done done) {
  const bool known = impl_->change_known(file, [&](FileLocks& locks, FileLocks::Answers& answers) {
    locks.drop_owner(owner, std::move(done), answers);
  });
  if (!known) done({});
}

void LockEngine::drop_handle(FileId file, const std::shared_ptr<HandleFence>& handle, Done done) {
  const bool known = impl_->change_known(file, [&](FileLocks& locks, FileLocks::Answers& answers) {
    locks.drop_handle(handle->id(), std::move(done), answers);
  });
  if (!known) done({});
}

void LockEngine::test(LockCall call, Tested done) {
  std::optional<Blocker> local;
  impl_->change_known(call.file, [&](FileLocks& locks, FileLocks::Answers&) { local = locks.blocker(call); });
  const std::optional<SessionId> self = impl_->parts.session.current();
  if (local) return done(local);
  if (!self) return done(fail(Errc::no_locks));
  impl_->executor.post([impl = impl_.get(), self = *self, call = std::move(call), done = std::move(done)] {
    JudgedPeers peers(impl->parts.session);
    const Result<protocol::FolderView> view = impl->runner.look(call.file, self, share::Freshness::forced, peers);
    if (!view) {
      done(fail(Errc::no_locks));
      return;
    }
    const protocol::Claim wanted{call.file, call.space, call.mode, call.range, {}, self, {}};
    std::optional<Blocker> first;
    for (const protocol::LockEntry& entry : view->others) {
      if (entry.kind == protocol::EntryKind::queued || !conflicts(entry.claim, wanted)) continue;
      if (!first || entry.claim.range.first < first->range.first) first = Blocker{entry.claim.mode, entry.claim.range, 0};
    }
    done(first);
  });
}

void LockEngine::on_lost(const SessionId& sid, const std::string& reason) {
  EventSink& events = impl_->parts.events;
  events.log(Level::error, "session {} is lost: {}", sid.text, reason);
  for (const Impl::FilePtr& file : impl_->all_files()) {
    FileLocks::Answers answers;
    std::vector<FileLocks::LostLock> lost;
    std::shared_ptr<FileData> data;
    {
      const std::lock_guard lock(file->mutex);
      data = file->data;
      ++file->session;
      lost = file->locks.lose_session(answers);
    }
    deliver(answers);
    // Pages that the kernel still has would be read past the fence.
    if (!lost.empty()) impl_->executor.post([data] { (void)data->refresh(); });
    for (const FileLocks::LostLock& lock : lost) {
      events.log(Level::error, "lock lost: {} {} {} bytes {}-{} of pid {}, held since {} (unix time); its open file answers EIO until closed",
                 data->path(), lock.space == protocol::Space::flock ? "flock" : "fcntl",
                 lock.hold.mode == locktable::Mode::write ? "WRITE" : "READ", lock.hold.range.first, lock.hold.range.last,
                 lock.hold.pid, lock.hold.since_us / 1000000);
    }
  }
  impl_->parts.fence.wake();
}

void LockEngine::on_joined(const SessionId&) { on_beat(true); }

void LockEngine::on_beat(bool after_gap) {
  if (!after_gap) return;
  impl_->parts.fence.wake();
  for (const Impl::FilePtr& file : impl_->all_files()) {
    const std::lock_guard lock(file->mutex);
    file->locks.nudge();
    impl_->kick(file);
  }
}

void LockEngine::on_peer_dead(const SessionId&) {
  for (const Impl::FilePtr& file : impl_->all_files()) {
    const std::lock_guard lock(file->mutex);
    if (!file->locks.has_requests()) continue;
    file->locks.nudge();
    impl_->kick(file);
  }
}

}  // namespace latchfs::engine
