#include "latchfs/engine/lock_engine.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <string>

#include "support/fake_session.hpp"
#include "support/fake_share.hpp"
#include "support/poll.hpp"

using namespace latchfs;
using namespace latchfs::engine;
using namespace std::chrono_literals;
using latchfs::testing::eventually;
using latchfs::testing::FakeDisk;
using latchfs::testing::FakeSession;
using latchfs::testing::FakeShare;
using protocol::Mode;
using protocol::Space;

namespace {

struct Log final : EventSink {
  bool wants(Level) const override { return true; }
  void write(Level, std::string_view line) override {
    const std::lock_guard lock(mutex);
    text += std::string(line) + "\n";
  }
  bool has(const std::string& part) {
    const std::lock_guard lock(mutex);
    return text.find(part) != std::string::npos;
  }
  std::mutex mutex;
  std::string text;
};

struct Data final : FileData {
  Result<void> flush() override {
    ++flushes;
    return {};
  }
  Result<void> refresh() override {
    ++refreshes;
    return refresh_error ? Result<void>(fail_errno(EIO)) : Result<void>();
  }
  std::string path() const override { return "/a/file"; }
  std::atomic<int> flushes{0};
  std::atomic<int> refreshes{0};
  std::atomic<bool> refresh_error{false};
};

constexpr protocol::LeaseTimes kTimes{1s, 3s, 4s};

/// One host: an engine with one file.
struct Host {
  Host(FakeDisk& disk, const std::string& sid)
      : share(disk), session(SessionId{sid}), lease(system_clock()), fence(lease, OnExpiry::wait, 1h),
        engine({share, system_clock(), log, session, fence}, kTimes, protocol::QueuePolicy::writer_first) {}

  LockCall call(std::uint64_t owner, Mode mode, ByteRange range, bool wait) {
    return {FileId{42}, data, handle(owner), Space::posix, mode, range, LockOwner{owner}, 100, wait};
  }
  std::shared_ptr<HandleFence> handle(std::uint64_t owner) {
    auto& slot = handles[owner];
    if (!slot) slot = std::make_shared<HandleFence>(HandleId{owner});
    return slot;
  }
  std::future<int> lock(std::uint64_t owner, Mode mode, ByteRange range, bool wait) {
    last = engine.next_id();
    return answer([&](LockService::Done done) { engine.lock(last, call(owner, mode, range, wait), std::move(done)); });
  }
  std::future<int> unlock(std::uint64_t owner, ByteRange range) {
    return answer([&](LockService::Done done) { engine.unlock(engine.next_id(), call(owner, Mode::read, range, false), std::move(done)); });
  }
  template <class Start>
  std::future<int> answer(Start&& start) {
    auto promise = std::make_shared<std::promise<int>>();
    start([promise](const Result<void>& result) { promise->set_value(result ? 0 : to_errno(result.error())); });
    return promise->get_future();
  }

  Log log;
  FakeShare share;
  FakeSession session;
  Lease lease;
  Fence fence;
  std::shared_ptr<Data> data = std::make_shared<Data>();
  std::map<std::uint64_t, std::shared_ptr<HandleFence>> handles;
  WaiterId last;
  LockEngine engine;
};

struct TwoHosts {
  TwoHosts() {
    disk.lay_out();
    a.session.known.insert(SessionId{kB});
    b.session.known.insert(SessionId{kA});
  }
  static constexpr const char* kA = "aaaaaaaaaaaaaaaaaaaa";
  static constexpr const char* kB = "bbbbbbbbbbbbbbbbbbbb";
  FakeDisk disk;
  Host a{disk, kA};
  Host b{disk, kB};

  std::vector<std::string> names() {
    std::vector<std::string> found;
    disk.list("locks/" + protocol::lock_folder(FileId{42}), found);
    return found;
  }
};

bool ready(std::future<int>& answer) { return answer.wait_for(0s) == std::future_status::ready; }

}  // namespace

TEST_CASE("what one host holds another is refused, and gets when it is let go") {
  TwoHosts t;
  CHECK(t.a.lock(1, Mode::write, {0, 9}, false).get() == 0);
  CHECK(t.a.handle(1)->has_locks());
  CHECK(t.b.lock(1, Mode::read, {9, 20}, false).get() == EAGAIN);
  CHECK(t.b.lock(1, Mode::write, {10, 20}, false).get() == 0);
  CHECK(t.a.unlock(1, {0, 9}).get() == 0);
  CHECK(t.b.lock(1, Mode::read, {0, 9}, false).get() == 0);
}

TEST_CASE("readers of two hosts share, a writer waits for both and goes before later readers") {
  TwoHosts t;
  CHECK(t.a.lock(1, Mode::read, ByteRange::whole(), false).get() == 0);
  CHECK(t.b.lock(1, Mode::read, ByteRange::whole(), false).get() == 0);
  auto writer = t.a.lock(2, Mode::write, ByteRange::whole(), true);
  CHECK(t.b.unlock(1, ByteRange::whole()).get() == 0);
  CHECK_FALSE(ready(writer));
  CHECK(t.a.unlock(1, ByteRange::whole()).get() == 0);
  CHECK(writer.get() == 0);
  CHECK(t.b.lock(1, Mode::read, ByteRange::whole(), false).get() == EAGAIN);
}

TEST_CASE("data is refreshed before a new claim is answered and written out before a claim leaves") {
  TwoHosts t;
  CHECK(t.a.lock(1, Mode::write, {0, 9}, false).get() == 0);
  CHECK(t.a.data->refreshes == 1);
  CHECK(t.a.lock(1, Mode::read, {0, 4}, false).get() == 0);  // a downgrade takes no new bytes
  CHECK(t.a.data->refreshes == 1);
  const int before = t.a.data->flushes;
  CHECK(t.a.unlock(1, ByteRange::whole()).get() == 0);
  CHECK(t.a.data->flushes > before);
  CHECK(eventually([&] { return t.names().empty(); }));
}

TEST_CASE("a lock whose data cannot be refreshed is not given") {
  TwoHosts t;
  t.a.data->refresh_error = true;
  CHECK(t.a.lock(1, Mode::write, {0, 9}, false).get() == EIO);
  CHECK(t.b.lock(1, Mode::write, {0, 9}, true).get() == 0);
}

TEST_CASE("an interrupted waiter is answered EINTR and leaves no name behind") {
  TwoHosts t;
  CHECK(t.a.lock(1, Mode::write, {0, 9}, false).get() == 0);
  auto waiter = t.b.lock(1, Mode::write, {0, 9}, true);
  CHECK(eventually([&] { return t.names().size() == 2; }));
  CHECK(t.b.engine.cancel(t.b.last));
  CHECK(waiter.get() == EINTR);
  CHECK_FALSE(t.b.engine.cancel(t.b.last));
  CHECK(eventually([&] { return t.names().size() == 1; }));
}

TEST_CASE("an interrupted request is answered although the share hangs") {
  TwoHosts t;
  t.a.share.freeze();
  auto waiter = t.a.lock(1, Mode::write, {0, 9}, true);
  CHECK(eventually([&] { return t.a.share.hanging() > 0; }));
  CHECK(t.a.engine.cancel(t.a.last));
  CHECK(waiter.get() == EINTR);
  t.a.share.thaw();
  CHECK(eventually([&] { return t.names().empty(); }));
}

TEST_CASE("nothing is granted while the lease is over") {
  TwoHosts t;
  t.a.session.lease = false;
  auto tried = t.a.lock(1, Mode::write, {0, 9}, false);
  CHECK(eventually([&] { return t.a.share.count("list") > 2; }));
  CHECK_FALSE(ready(tried));
  t.a.session.lease = true;
  t.a.engine.on_beat(true);
  CHECK(tried.get() == 0);
}

TEST_CASE("when the session is lost its handles are fenced, one line says which lock, and waiters go on in the next session") {
  TwoHosts t;
  CHECK(t.b.lock(1, Mode::write, {0, 9}, false).get() == 0);
  CHECK(t.a.lock(1, Mode::write, {20, 29}, false).get() == 0);
  auto waiter = t.a.lock(2, Mode::write, {0, 9}, true);
  t.a.session.open = false;
  t.a.engine.on_lost(SessionId{TwoHosts::kA}, "test");
  CHECK(t.a.handle(1)->lost());
  CHECK_FALSE(t.a.handle(2)->lost());
  CHECK(eventually([&] { return t.a.data->refreshes == 2; }));  // nothing is read past the fence from cached pages
  CHECK(t.a.log.has("lock lost: /a/file fcntl WRITE bytes 20-29 of pid 100"));
  CHECK(t.a.lock(1, Mode::read, {50, 50}, false).get() == EIO);
  t.a.session.open = true;
  t.a.engine.on_joined(SessionId{TwoHosts::kA});
  CHECK_FALSE(ready(waiter));
  CHECK(t.b.unlock(1, {0, 9}).get() == 0);
  CHECK(waiter.get() == 0);
}

TEST_CASE("claims of a dead or unknown-and-gone session are void") {
  TwoHosts t;
  CHECK(t.b.lock(1, Mode::write, {0, 9}, false).get() == 0);
  SUBCASE("known dead") { t.a.session.dead.insert(SessionId{TwoHosts::kB}); }
  SUBCASE("a stranger that a look at sessions/ does not show") { t.a.session.known.clear(); }
  CHECK(t.a.lock(1, Mode::write, {0, 9}, false).get() == 0);
}

TEST_CASE("a claim that does not parse stops everything in its folder and is never removed") {
  TwoHosts t;
  const std::string odd = "locks/" + protocol::lock_folder(FileId{42}) + "/h.42.nonsense";
  t.disk.make("locks/" + protocol::lock_folder(FileId{42}), true, "");
  t.disk.make(odd, true, "");
  CHECK(t.a.lock(1, Mode::write, {0, 9}, false).get() == EAGAIN);
  CHECK(t.a.log.has("begins like a claim"));
  CHECK(t.disk.remove(odd) == 0);
  CHECK(t.a.lock(1, Mode::write, {0, 9}, false).get() == 0);
}

TEST_CASE("a share that takes no names answers ENOLCK, and what is held stays") {
  TwoHosts t;
  CHECK(t.a.lock(1, Mode::write, {0, 9}, false).get() == 0);
  t.a.share.set_hook([](const FakeShare::Call& call) { return FakeShare::Fault{call.op == "make_entry" ? ENOSPC : 0, 0}; });
  CHECK(t.a.lock(1, Mode::write, {20, 29}, true).get() == ENOLCK);
  CHECK(t.b.lock(1, Mode::write, {0, 9}, false).get() == EAGAIN);
  CHECK(t.a.unlock(1, {0, 9}).get() == 0);
  CHECK(t.b.lock(1, Mode::write, {0, 29}, false).get() == 0);
}

TEST_CASE("a claim that vanished from the share makes the session disown itself") {
  TwoHosts t;
  CHECK(t.a.lock(1, Mode::write, {0, 9}, false).get() == 0);
  t.disk.remove("locks/" + protocol::lock_folder(FileId{42}) + "/" + t.names().at(0));
  CHECK(t.a.lock(2, Mode::write, {20, 20}, false).get() == 0);
  auto pending = t.a.lock(2, Mode::write, {21, 21}, false);  // the second listing without it is proof
  CHECK(eventually([&] { return t.a.session.disowned.load(); }));
  CHECK_FALSE(ready(pending));
}

TEST_CASE("F_GETLK names the local pid, 0 for another host, nothing where nothing is in the way") {
  TwoHosts t;
  CHECK(t.a.lock(1, Mode::write, {5, 9}, false).get() == 0);
  const auto test = [](Host& host, std::uint64_t owner, ByteRange range) {
    std::promise<std::optional<Blocker>> promise;
    host.engine.test(host.call(owner, Mode::read, range, false),
                     [&](const Result<std::optional<Blocker>>& found) { promise.set_value(found.value()); });
    return promise.get_future().get();
  };
  CHECK(test(t.a, 2, {0, 20})->pid == 100);
  CHECK(test(t.b, 1, {0, 20})->pid == 0);
  CHECK(test(t.b, 1, {0, 20})->range == ByteRange{5, 9});
  CHECK_FALSE(test(t.b, 1, {10, 20}).has_value());
  CHECK_FALSE(test(t.a, 1, {0, 20}).has_value());
}

TEST_CASE("closing drops the owner's and the handle's locks; stopping withdraws every name") {
  TwoHosts t;
  CHECK(t.a.lock(1, Mode::write, {0, 9}, false).get() == 0);
  CHECK(t.a.lock(2, Mode::write, {10, 19}, false).get() == 0);
  CHECK(t.a.lock(3, Mode::write, {20, 29}, false).get() == 0);
  CHECK(t.a.answer([&](LockService::Done done) { t.a.engine.drop_owner(FileId{42}, LockOwner{1}, std::move(done)); }).get() == 0);
  CHECK(t.b.lock(1, Mode::write, {0, 9}, false).get() == 0);
  CHECK(t.a.answer([&](LockService::Done done) { t.a.engine.drop_handle(FileId{42}, t.a.handle(2), std::move(done)); }).get() == 0);
  CHECK(t.b.lock(1, Mode::write, {10, 19}, false).get() == 0);
  CHECK(t.a.engine.stop(30s));
  CHECK(t.b.lock(1, Mode::write, {20, 29}, false).get() == 0);
  CHECK(t.a.lock(4, Mode::write, {40, 49}, false).get() == ENOLCK);
  CHECK(t.b.engine.stop(30s));
  CHECK(t.names().empty());
}
