#include "latchfs/base/duration.hpp"

#include <doctest/doctest.h>

using namespace latchfs;
using namespace std::chrono_literals;

TEST_CASE("durations are read with their unit and written back") {
  CHECK(parse_duration("200ms").value() == 200ms);
  CHECK(parse_duration("5s").value() == 5s);
  CHECK(parse_duration("1.5s").value() == 1500ms);
  CHECK(parse_duration("2h").value() == 2h);
  for (const char* text : {"0s", "200ms", "5s", "1m", "90s", "2h"}) {
    CHECK(format_duration(parse_duration(text).value()) == text);
  }
}

TEST_CASE("a duration without a unit, below zero or absurdly long is refused") {
  for (const char* text : {"", "5", "s", "-1s", "5 s", "5S", "1e3s", "inf s", "infs", "nans", "9999999h", "5sx"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_duration(text).has_value());
  }
}
