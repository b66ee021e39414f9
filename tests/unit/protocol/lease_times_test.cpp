#include "latchfs/protocol/lease_times.hpp"

#include <doctest/doctest.h>

using namespace latchfs;
using namespace latchfs::protocol;
using namespace std::chrono_literals;

TEST_CASE("the default times keep their own rules") { CHECK(check(LeaseTimes{}).has_value()); }

TEST_CASE("each rule has a lower bound that is still allowed") {
  CHECK(check({100ms, 300ms, 375ms}).has_value());
  CHECK(check({1s, 8s, 12s}).has_value());
  CHECK_FALSE(check({99ms, 300ms, 375ms}).has_value());
  CHECK_FALSE(check({100ms, 299ms, 375ms}).has_value());
  CHECK_FALSE(check({100ms, 300ms, 374ms}).has_value());
}

TEST_CASE("a refusal names the rule and the values") {
  const auto refused = check({5s, 10s, 60s});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Errc::refused);
  CHECK(refused.error().what.find("fence_after is 10s") != std::string::npos);
  CHECK(refused.error().what.find("three times beat (5s)") != std::string::npos);
}

TEST_CASE("absurd times are refused without overflow") {
  CHECK_FALSE(check({Nanos::max(), Nanos::max(), Nanos::max()}).has_value());
  CHECK_FALSE(check({100ms, Nanos::max(), Nanos::max()}).has_value());
  CHECK_FALSE(check({Nanos::min(), Nanos::min(), Nanos::min()}).has_value());
  CHECK_FALSE(check({100ms, 300ms, Nanos::min()}).has_value());
}

TEST_CASE("derived times") {
  CHECK(longest_counted_gap(LeaseTimes{}) == 10s);
  CHECK(late_after(LeaseTimes{}) == 10s);
}
