#include "latchfs/share/posix_share.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "support/temp_dir.hpp"

using namespace latchfs;
using namespace latchfs::share;
using latchfs::testing::TempDir;
namespace fs = std::filesystem;

namespace {

struct Fixture {
  TempDir dir;
  PosixShare share{UniqueFd(::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), EntryForm::directory};

  void plant(const std::string& name, const std::string& content) const { std::ofstream(dir / name) << content; }
};

/// Sets the umask for a while. Test cases of one program run one after the other.
class Umask {
 public:
  explicit Umask(mode_t mask) : before_(::umask(mask)) {}
  Umask(const Umask&) = delete;
  Umask& operator=(const Umask&) = delete;
  ~Umask() { ::umask(before_); }

 private:
  mode_t before_;
};

template <class R>
int errno_of(const R& result) {
  return result.has_value() ? 0 : result.error().sys;
}

mode_t mode_of(const fs::path& path) {
  struct stat st {};
  return ::lstat(path.c_str(), &st) == 0 ? st.st_mode & 07777 : 0;
}

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

}  // namespace

TEST_CASE("everything is for this user alone, whatever the umask") {
  for (const mode_t mask : {0000, 0022, 0077, 0777}) {
    CAPTURE(mask);
    Fixture f;
    {
      const Umask set(mask);
      REQUIRE(f.share.make_folder("beats").has_value());
      REQUIRE(f.share.make_file("beats", "s.0").has_value());
      REQUIRE(f.share.publish_file("beats", "p", "text").has_value());
      REQUIRE(f.share.make_entry("beats", "e").has_value());
    }
    CHECK(mode_of(f.dir / "beats") == 0700);
    CHECK(mode_of(f.dir / "beats/s.0") == 0600);
    CHECK(mode_of(f.dir / "beats/p") == 0600);
    CHECK((mode_of(f.dir / "beats/e") & 0077) == 0);
    CHECK(f.share.remove_entry("beats", "e").has_value());
  }
}

TEST_CASE("no symbolic link is followed, at no place of a path") {
  Fixture f;
  const TempDir outside;
  REQUIRE(fs::create_directory(outside / "0a3"));
  std::ofstream(outside / "secret") << "secret";
  fs::create_directory_symlink(outside.path(), f.dir / "locks");
  REQUIRE(fs::create_directory(f.dir / "sessions"));
  fs::create_symlink(outside / "secret", f.dir / "sessions/s");
  fs::create_symlink(outside / "new", f.dir / "sessions/n");

  CHECK_FALSE(f.share.list("locks", Freshness::forced).has_value());
  CHECK_FALSE(f.share.list("locks", Freshness::own_change).has_value());
  CHECK_FALSE(f.share.list("locks/0a3", Freshness::forced).has_value());
  CHECK_FALSE(f.share.make_entry("locks", "h.1").has_value());
  CHECK_FALSE(f.share.make_entry("locks/0a3", "h.1").has_value());
  CHECK_FALSE(f.share.make_folder("locks/0a4").has_value());
  CHECK(errno_of(f.share.read_file("sessions", "s", 100)) == EINVAL);
  CHECK(errno_of(f.share.make_file("sessions", "n")) == EEXIST);
  CHECK(errno_of(f.share.publish_file("sessions", "n", "text")) == EEXIST);
  CHECK(S_ISLNK(f.share.facts("sessions", "s")->mode));
  CHECK(f.share.remove_entry("sessions", "s").has_value());
  CHECK(fs::exists(outside / "secret"));
  CHECK_FALSE(fs::exists(outside / "new"));
}

TEST_CASE("names that lead elsewhere are no names") {
  Fixture f;
  REQUIRE(f.share.make_folder("beats").has_value());
  const std::string nul("a\0b", 3);
  for (const std::string& bad : {std::string(), std::string("."), std::string(".."), std::string("a/b"),
                                 std::string("/a"), std::string("../x"), nul}) {
    CAPTURE(bad);
    CHECK(errno_of(f.share.make_entry("beats", bad)) == EINVAL);
    CHECK(errno_of(f.share.remove_entry("beats", bad)) == EINVAL);
    CHECK(errno_of(f.share.make_file("beats", bad)) == EINVAL);
    CHECK(errno_of(f.share.publish_file("beats", bad, "")) == EINVAL);
    CHECK(errno_of(f.share.read_file("beats", bad, 1)) == EINVAL);
    CHECK(errno_of(f.share.rename("beats", bad, "x")) == EINVAL);
    CHECK(errno_of(f.share.rename("beats", "x", bad)) == EINVAL);
  }
  for (const char* bad : {"..", "beats/..", "../beats", "beats//x", "/", "."}) {
    CAPTURE(bad);
    CHECK(errno_of(f.share.list(bad, Freshness::own_change)) == EINVAL);
    CHECK(errno_of(f.share.make_folder(bad)) == EINVAL);
  }
}

TEST_CASE("only regular files are read, and nothing hangs") {
  Fixture f;
  REQUIRE(f.share.make_folder("sessions").has_value());
  REQUIRE(::mkfifo((f.dir / "sessions/fifo").c_str(), 0600) == 0);
  REQUIRE(fs::create_directory(f.dir / "sessions/dir"));
  CHECK(errno_of(f.share.read_file("sessions", "fifo", 10)) == EINVAL);
  CHECK(errno_of(f.share.read_file("sessions", "dir", 10)) == EINVAL);
}

TEST_CASE("a listing is always of now") {
  Fixture f;
  REQUIRE(f.share.make_folder("beats").has_value());
  for (const Freshness freshness : {Freshness::own_change, Freshness::forced}) {
    f.plant("beats/x", "");
    CHECK(f.share.list("beats", freshness)->size() == 1);
    fs::remove(f.dir / "beats/x");
    CHECK(f.share.list("beats", freshness)->empty());
  }
  for (int i = 0; i < 3000; ++i) REQUIRE(f.share.make_entry("beats", "n" + std::to_string(i)).has_value());
  CHECK(f.share.list("beats", Freshness::forced)->size() == 3000);
}

TEST_CASE("a folder that is a file cannot be listed") {
  Fixture f;
  f.plant("beats", "");
  CHECK(errno_of(f.share.list("beats", Freshness::own_change)) == ENOTDIR);
  CHECK(errno_of(f.share.list("beats", Freshness::forced)) == ENOTDIR);
}

TEST_CASE("a file that speaks of its own number tells the truth") {
  Fixture f;
  REQUIRE(f.share.publish_numbered("", "format", [](std::uint64_t n) { return std::to_string(n); }).has_value());
  CHECK(f.share.read_file("", "format", 100).value() == std::to_string(f.share.facts("", "format")->inode));
}

TEST_CASE("no descriptor is left open, on success or on error") {
  Fixture f;
  REQUIRE(f.share.make_folder("beats").has_value());
  const int before = open_descriptors();
  for (int i = 0; i < 50; ++i) {
    (void)f.share.publish_file("beats", "p", "text");
    (void)f.share.read_file("beats", "p", 10);
    (void)f.share.read_file("beats", "none", 10);
    (void)f.share.list("beats", Freshness::forced);
    (void)f.share.list("none", Freshness::forced);
    (void)f.share.list("beats/p", Freshness::own_change);
    (void)f.share.make_entry("beats", "e");
    (void)f.share.remove_entry("beats", "e");
    (void)f.share.rename("beats", "none", "other");
    (void)f.share.facts("beats", "none");
    (void)f.share.make_folder("beats/p/x");
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("descriptors do not go on to programs that are started") {
  Fixture f;
  REQUIRE(f.share.publish_file("", "p", "text").has_value());
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = fs::read_symlink(entry.path(), gone).string();
    if (gone || target.find(f.dir.path().string()) == std::string::npos) continue;
    CHECK((::fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC) != 0);
  }
}

TEST_CASE("a local file system takes directories as entries") {
  Fixture f;
  const UniqueFd fd(::open(f.dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  CHECK(best_entry_form(fd.get()) == EntryForm::directory);
}
