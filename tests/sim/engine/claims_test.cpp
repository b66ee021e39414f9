#include <doctest/doctest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "claim_world.hpp"

using namespace latchfs;

namespace {

// LATCHFS_SIM_SEED=n replays one schedule, LATCHFS_SIM_COUNT=n runs more of them.
void explore(std::uint64_t first, std::uint64_t count, const sim::Options& options, int steps) {
  if (const char* wanted = std::getenv("LATCHFS_SIM_COUNT")) count = std::stoull(wanted);
  if (const char* replay = std::getenv("LATCHFS_SIM_SEED")) {
    first = std::stoull(replay);
    count = 1;
  }
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    try {
      sim::World(seed, options).run(steps);
    } catch (const std::runtime_error& broken) {
      FAIL("seed " << seed << ": " << std::string(broken.what()));
    }
  }
}

}  // namespace

TEST_CASE("claims: no two holders, no forgotten waiter, no name left") { explore(1, 3000, {}, 600); }

TEST_CASE("claims: the same with two hosts and one owner each, long") { explore(100'000, 2000, {2, 1}, 1500); }

TEST_CASE("claims: the same on a share whose calls fail, done or not") { explore(200'000, 2000, {3, 2, 10}, 600); }

TEST_CASE("claims: owners that wait while they hold, and are interrupted") { explore(300'000, 3000, {3, 3, 0, true}, 600); }
