#include "fusefs/lock_convert.hpp"

#include <doctest/doctest.h>

using namespace latchfs;
using namespace latchfs::fusefs;
using protocol::Mode;

namespace {

struct flock asked(short type, off_t start, off_t length) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = start;
  lock.l_len = length;
  return lock;
}

}  // namespace

TEST_CASE("ranges of struct flock") {
  CHECK(range_of(asked(F_RDLCK, 0, 0)) == ByteRange::whole());
  CHECK(range_of(asked(F_RDLCK, 7, 0)) == ByteRange{7, ByteRange::kMax});
  CHECK(range_of(asked(F_RDLCK, 7, 1)) == ByteRange{7, 7});
  CHECK(range_of(asked(F_RDLCK, 10, 20)) == ByteRange{10, 29});
  const auto last = static_cast<off_t>(ByteRange::kMax);
  CHECK(range_of(asked(F_RDLCK, last, 1)) == ByteRange{ByteRange::kMax, ByteRange::kMax});
  CHECK(range_of(asked(F_RDLCK, 0, last)) == ByteRange{0, ByteRange::kMax - 1});
  CHECK_FALSE(range_of(asked(F_RDLCK, last, 2)).has_value());
  CHECK_FALSE(range_of(asked(F_RDLCK, -1, 2)).has_value());
  CHECK_FALSE(range_of(asked(F_RDLCK, 5, -2)).has_value());
}

TEST_CASE("modes of fcntl and flock") {
  CHECK(mode_of(asked(F_RDLCK, 0, 0)) == Mode::read);
  CHECK(mode_of(asked(F_WRLCK, 0, 0)) == Mode::write);
  CHECK(mode_of(asked(F_UNLCK, 0, 0)) == std::nullopt);
  CHECK(mode_of_flock(LOCK_SH) == Mode::read);
  CHECK(mode_of_flock(LOCK_EX) == Mode::write);
  CHECK(mode_of_flock(LOCK_UN) == std::nullopt);
  CHECK(mode_of_flock(LOCK_EX | LOCK_NB) == Mode::write);
  CHECK(mode_of_flock(LOCK_UN | LOCK_NB) == std::nullopt);
  CHECK(flock_waits(LOCK_SH));
  CHECK_FALSE(flock_waits(LOCK_SH | LOCK_NB));
}

TEST_CASE("the answer to F_GETLK") {
  CHECK(to_flock(std::nullopt).l_type == F_UNLCK);
  const struct flock local = to_flock(engine::Blocker{Mode::write, ByteRange{10, 29}, 4711});
  CHECK(local.l_type == F_WRLCK);
  CHECK(local.l_whence == SEEK_SET);
  CHECK(local.l_start == 10);
  CHECK(local.l_len == 20);
  CHECK(local.l_pid == 4711);
  const struct flock remote = to_flock(engine::Blocker{Mode::read, ByteRange{5, ByteRange::kMax}, 0});
  CHECK(remote.l_type == F_RDLCK);
  CHECK(remote.l_start == 5);
  CHECK(remote.l_len == 0);
  CHECK(remote.l_pid == 0);
}

TEST_CASE("a range comes back as it went in") {
  for (const ByteRange range : {ByteRange::whole(), ByteRange{0, 0}, ByteRange{3, 9}, ByteRange{8, ByteRange::kMax},
                                ByteRange{ByteRange::kMax - 1, ByteRange::kMax - 1}}) {
    CHECK(range_of(to_flock(engine::Blocker{Mode::read, range, 1})) == range);
  }
}
