#include "latchfs/engine/fence.hpp"

#include <doctest/doctest.h>

#include <atomic>

#include "support/poll.hpp"

using namespace latchfs;
using namespace latchfs::engine;
using namespace std::chrono_literals;
using latchfs::testing::eventually;

namespace {

struct Bench {
  explicit Bench(OnExpiry on_expiry = OnExpiry::wait, Nanos limit = 1h)
      : lease(system_clock()), fence(lease, on_expiry, limit), handle(std::make_shared<HandleFence>(HandleId{1})) {
    handle->set_locks(1);
  }
  void renew() {
    lease.confirm(lease.now(), 1h);
    fence.wake();
  }
  WaiterId hold() {
    return fence.hold(handle, [this](const Result<void>& result) { (result ? passed : failed)++; });
  }
  Lease lease;
  Fence fence;
  std::shared_ptr<HandleFence> handle;
  std::atomic<int> passed{0};
  std::atomic<int> failed{0};
};

}  // namespace

TEST_CASE("a handle without locks passes whatever the lease is; a lost one never does") {
  Bench bench;
  CHECK(bench.fence.check(*bench.handle) == Fence::Verdict::hold);
  bench.handle->set_locks(0);
  CHECK(bench.fence.check(*bench.handle) == Fence::Verdict::pass);
  bench.renew();
  bench.handle->set_lost();
  CHECK(bench.fence.check(*bench.handle) == Fence::Verdict::fail);
}

TEST_CASE("on_expiry: fail answers at once instead of holding") {
  Bench bench(OnExpiry::fail);
  CHECK(bench.fence.check(*bench.handle) == Fence::Verdict::fail);
  bench.renew();
  CHECK(bench.fence.check(*bench.handle) == Fence::Verdict::pass);
}

TEST_CASE("held work goes on when the lease is renewed") {
  Bench bench;
  bench.hold();
  bench.hold();
  bench.renew();
  CHECK(eventually([&] { return bench.passed == 2; }));
  CHECK(bench.failed == 0);
}

TEST_CASE("held work fails when its lock turns out to be lost, when it is interrupted, at the limit and at the end") {
  SUBCASE("lost") {
    Bench bench;
    bench.hold();
    bench.handle->set_lost();
    bench.fence.wake();
    CHECK(eventually([&] { return bench.failed == 1; }));
  }
  SUBCASE("interrupted") {
    Bench bench;
    const WaiterId first = bench.hold();
    bench.hold();
    bench.fence.cancel(first);
    CHECK(eventually([&] { return bench.failed == 1; }));
    CHECK(bench.passed == 0);
    bench.renew();
    CHECK(eventually([&] { return bench.passed == 1; }));
  }
  SUBCASE("limit") {
    Bench bench(OnExpiry::wait, 10ms);
    bench.hold();
    CHECK(eventually([&] { return bench.failed == 1; }));
  }
  SUBCASE("end") {
    Bench bench;
    bench.hold();
    bench.fence.stop();
    CHECK(bench.failed == 1);
    bench.hold();
    CHECK(bench.failed == 2);
  }
}
