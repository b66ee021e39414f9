#include "share/publish.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "latchfs/share/posix_share.hpp"
#include "support/temp_dir.hpp"

using namespace latchfs;
using namespace latchfs::share;
using latchfs::testing::TempDir;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

int count_in(const fs::path& dir) {
  return static_cast<int>(std::distance(fs::directory_iterator(dir), fs::directory_iterator{}));
}

/// From now on linkat() fails with `err` for this thread: a share without hard links.
bool forbid_links(int err) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_linkat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(err)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

TEST_CASE("without hard links a file is created in place") {
  for (const int err : {EPERM, EOPNOTSUPP, ENOSYS, EMLINK}) {
    CAPTURE(err);
    const TempDir dir;
    PosixShare share(UniqueFd(::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), EntryForm::directory);
    bool forbidden = false;
    Result<void> first, second;
    std::thread([&] {
      forbidden = forbid_links(err);
      if (!forbidden) return;
      first = share.publish_file("", "p", "text");
      second = share.publish_file("", "p", "other");
    }).join();
    if (!forbidden) {
      MESSAGE("this kernel allows no seccomp filter here");
      return;
    }
    CHECK(first.has_value());
    REQUIRE_FALSE(second.has_value());
    CHECK(second.error().sys == EEXIST);
    CHECK(text_of(dir / "p") == "text");
    CHECK(count_in(dir.path()) == 1);
  }
}

TEST_CASE("an error that does not speak of links is no reason to write in place") {
  const TempDir dir;
  const UniqueFd fd(::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  PosixShare share(UniqueFd(::dup(fd.get())), EntryForm::directory);
  Result<void> result;
  bool forbidden = false;
  std::thread([&] {
    forbidden = forbid_links(EIO);
    if (forbidden) result = share.publish_file("", "p", "text");
  }).join();
  if (!forbidden) {
    MESSAGE("this kernel allows no seccomp filter here");
    return;
  }
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().sys == EIO);
  CHECK(count_in(dir.path()) == 0);
}

TEST_CASE("a link whose reply was lost counts as done") {
  const TempDir dir;
  const UniqueFd fd(::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // The temporary file gets its second name behind the back of the call, which then fails with EEXIST.
  const auto published = publish_by_link(fd.get(), "p", [&](std::uint64_t) {
    for (const auto& entry : fs::directory_iterator(dir.path())) fs::create_hard_link(entry.path(), dir / "p");
    return std::string("text");
  });
  CHECK(published.has_value());
  CHECK(text_of(dir / "p") == "text");
  CHECK(count_in(dir.path()) == 1);
}

TEST_CASE("a name that is taken stays as it is, and no temporary name is left") {
  const TempDir dir;
  const UniqueFd fd(::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::ofstream(dir / "p") << "first";
  const auto content = [](std::uint64_t) { return std::string("second"); };
  CHECK(is_errno(publish_by_link(fd.get(), "p", content).error(), EEXIST));
  CHECK(is_errno(publish_in_place(fd.get(), "p", content).error(), EEXIST));
  CHECK(text_of(dir / "p") == "first");
  CHECK(count_in(dir.path()) == 1);
}
