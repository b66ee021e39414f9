#include "latchfs/engine/control_dir.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "engine/mount_table.hpp"
#include "engine/session_info_local.hpp"
#include "support/temp_dir.hpp"

using namespace latchfs;
using namespace latchfs::engine;
using latchfs::testing::TempDir;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

const protocol::LeaseTimes kShort{1s, 8s, 12s};
const std::string kSid(20, 'a');

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

mode_t mode_of(const fs::path& path) {
  struct stat st {};
  return ::lstat(path.c_str(), &st) == 0 ? st.st_mode & 07777 : 0;
}

/// The refusal's sentence; it must be a refusal.
template <class T>
std::string refusal(const Result<T>& result) {
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == Errc::refused);
  CHECK_FALSE(result.error().what.empty());
  CHECK(result.error().what.find('\n') == std::string::npos);
  return result.error().what;
}

bool speaks_of(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t count_in(const fs::path& dir) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(dir), fs::directory_iterator{}));
}

struct Source {
  TempDir dir;
  std::string path = dir.path().string();
  fs::path control = dir / ".latchfs";
  Result<ControlDir> open(std::optional<protocol::LeaseTimes> wanted = {}) const {
    return open_control_dir(path, wanted);
  }
};

/// Runs `work` as a user without rights; true where it said so. Only for root, who else has none to give up.
bool as_nobody(const std::function<bool()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    const bool dropped = ::setgid(kNobody) == 0 && ::setuid(kNobody) == 0;
    ::_exit(dropped && work() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("the first mount makes the control directory, later ones adopt its format") {
  const Source source;
  const mode_t before = ::umask(0);
  const auto first = source.open(kShort);
  ::umask(before);
  REQUIRE(first.has_value());
  CHECK(first->format.times == kShort);
  CHECK(first->format.share_uuid.size() == 32);
  CHECK(first->format.own_inode != 0);
  CHECK(mode_of(source.control) == 0700);
  for (const char* folder : {"sessions", "beats", "inbox", "locks"}) {
    CHECK(mode_of(source.control / folder) == 0700);
    CHECK(fs::is_directory(source.control / folder));
  }
  CHECK(mode_of(source.control / "format") == 0600);
  CHECK(speaks_of(text_of(source.control / "README"), "latchfs"));
  CHECK(count_in(source.control) == 6);

  const auto second = source.open();
  REQUIRE(second.has_value());
  CHECK(second->format == first->format);
  CHECK(source.open(kShort)->format == first->format);
  CHECK(count_in(source.control) == 6);
}

TEST_CASE("without a wish the default times are taken, and bad wishes are refused") {
  const Source source;
  CHECK(speaks_of(refusal(source.open(protocol::LeaseTimes{1s, 2s, 3s})), "fence_after"));
  CHECK_FALSE(fs::exists(source.control));
  CHECK(source.open()->format.times == protocol::LeaseTimes{});
}

TEST_CASE("many daemons that start at once agree on one format") {
  const Source source;
  std::vector<Result<ControlDir>> opened(8);
  std::vector<std::thread> daemons;
  for (auto& slot : opened) daemons.emplace_back([&] { slot = source.open(kShort); });
  for (std::thread& daemon : daemons) daemon.join();
  for (const auto& control : opened) {
    REQUIRE(control.has_value());
    CHECK(control->format == opened[0]->format);
  }
  CHECK(count_in(source.control) == 6);
}

TEST_CASE("other times are taken while there is no session, and refused while there is one") {
  const Source source;
  const auto old = source.open();
  REQUIRE(old.has_value());
  const auto changed = source.open(kShort);
  REQUIRE(changed.has_value());
  CHECK(changed->format.times == kShort);
  CHECK(changed->format.share_uuid == old->format.share_uuid);
  CHECK(count_in(source.control) == 6);

  const protocol::LeaseTimes other{2s, 8s, 12s};
  SUBCASE("a session") { write(source.control / "sessions" / kSid, "{}"); }
  SUBCASE("one that is only opening") { write(source.control / "beats" / (kSid + ".0"), ""); }
  SUBCASE("one whose file is half written") { write(source.control / "sessions" / kSid, "{\"host"); }
  CHECK(speaks_of(refusal(source.open(other)), "beat=1s"));
  CHECK(source.open()->format == changed->format);
  CHECK(source.open(kShort)->format == changed->format);
  CHECK(count_in(source.control) == 6);
}

TEST_CASE("sessions that are dead, or proved to be, do not stand in the way of other times") {
  const Source source;
  REQUIRE(source.open().has_value());
  SUBCASE("broken") {
    write(source.control / "sessions" / kSid, "{}");
    write(source.control / "beats" / (kSid + ".dead"), "");
  }
  SUBCASE("its process is gone") {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ::waitpid(child, nullptr, 0);
    auto info = local_session_info(system_clock(), "", "");
    info.pid = static_cast<std::uint64_t>(child);
    write(source.control / "sessions" / kSid, protocol::to_text(info));
    write(source.control / "beats" / (kSid + ".5"), "");
  }
  CHECK(source.open(kShort)->format.times == kShort);
}

TEST_CASE("a torn format is waited for, and refused in the end with the mend named") {
  const Source source;
  const auto control = source.open();
  REQUIRE(control.has_value());
  const fs::path format = source.control / "format";
  const std::string whole = text_of(format);
  SUBCASE("it becomes whole while it is waited for") {
    write(format, whole.substr(0, 30));
    std::thread writer([&] {
      std::this_thread::sleep_for(200ms);
      write(format, whole);
    });
    CHECK(source.open()->format == control->format);
    writer.join();
  }
  SUBCASE("empty") {
    write(format, "");
    CHECK(speaks_of(refusal(source.open()), "remove " + source.path));
  }
  SUBCASE("torn") {
    write(format, whole.substr(0, 30));
    CHECK(speaks_of(refusal(source.open()), "remove " + source.path));
  }
}

TEST_CASE("a format of a later version, or that was copied, is refused") {
  const Source source;
  REQUIRE(source.open().has_value());
  const fs::path format = source.control / "format";
  std::string text = text_of(format);
  SUBCASE("later version") {
    write(format, text.replace(text.find("format: 1"), 9, "format: 2"));
    CHECK(speaks_of(refusal(source.open()), "format 2"));
  }
  SUBCASE("copied") {
    fs::rename(format, source.control / "old");
    fs::copy_file(source.control / "old", format);
    CHECK(speaks_of(refusal(source.open()), "copied"));
  }
}

TEST_CASE("a format that is missing while sessions are there is not made anew") {
  const Source source;
  REQUIRE(source.open().has_value());
  fs::remove(source.control / "format");
  write(source.control / "beats" / (kSid + ".9"), "");
  CHECK(speaks_of(refusal(source.open(kShort)), "missing"));
  fs::remove(source.control / "beats" / (kSid + ".9"));
  CHECK(source.open(kShort)->format.times == kShort);
}

TEST_CASE("a planted control directory is refused") {
  const Source source;
  const TempDir elsewhere;
  SUBCASE("a symbolic link") {
    fs::create_directory_symlink(elsewhere.path(), source.control);
    CHECK(speaks_of(refusal(source.open()), "symbolic link"));
    CHECK(fs::is_empty(elsewhere.path()));
  }
  SUBCASE("a link that leads nowhere") {
    fs::create_symlink(elsewhere / "none", source.control);
    CHECK(speaks_of(refusal(source.open()), "symbolic link"));
  }
  SUBCASE("a file") {
    write(source.control, "");
    CHECK(speaks_of(refusal(source.open()), "no directory"));
  }
  SUBCASE("writable for everybody") {
    fs::create_directory(source.control);
    ::chmod(source.control.c_str(), 0777);
    CHECK(speaks_of(refusal(source.open()), "everybody"));
    CHECK(fs::is_empty(source.control));
  }
  SUBCASE("a link in place of a folder in it") {
    fs::create_directory(source.control);
    fs::create_directory_symlink(elsewhere.path(), source.control / "sessions");
    CHECK_FALSE(source.open().has_value());
    CHECK(fs::is_empty(elsewhere.path()));
  }
  SUBCASE("a link in place of the format") {
    fs::create_directory(source.control);
    write(elsewhere / "format", "x");
    fs::create_symlink(elsewhere / "format", source.control / "format");
    CHECK_FALSE(source.open().has_value());
  }
  SUBCASE("of another user") {
    if (::geteuid() != 0) return;  // nobody else can be impersonated
    fs::create_directory(source.control);
    REQUIRE(::chown(source.control.c_str(), 12345, 12345) == 0);
    CHECK(speaks_of(refusal(source.open()), "another user"));
    CHECK(fs::is_empty(source.control));
  }
}

TEST_CASE("a directory that is readable for the group only is fine") {
  const Source source;
  fs::create_directory(source.control);
  ::chmod(source.control.c_str(), 0750);
  CHECK(source.open().has_value());
}

TEST_CASE("what cannot be a source") {
  const Source source;
  const TempDir mount;
  const std::string mnt = mount.path().string();
  CHECK(check_source(source.path, mnt, false).has_value());
  write(source.dir / "file", "");
  CHECK(speaks_of(refusal(check_source(source.path + "/file", mnt, false)), "no directory"));
  CHECK(speaks_of(refusal(check_source(source.path + "/none", mnt, false)), "no directory"));
  CHECK(speaks_of(refusal(open_control_dir(source.path + "/none", {})), "no directory"));

  fs::create_directories(source.dir / "a/b");
  const std::string below = source.path + "/a/b";
  CHECK(check_source(below, mnt, false).has_value());
  REQUIRE(source.open().has_value());
  CHECK(check_source(source.path, mnt, false).has_value());
  CHECK(speaks_of(refusal(check_source(below, mnt, false)), "inside another latchfs share"));
  CHECK(speaks_of(refusal(open_control_dir(below, {})), "inside another latchfs share"));
  CHECK(speaks_of(refusal(check_source(below, mnt, true)), "inside another latchfs share"));
}

TEST_CASE("a mount point in the source is refused") {
  const Source source;
  fs::create_directories(source.dir / "a/b");
  CHECK(speaks_of(refusal(check_source(source.path, source.path, false)), "is the source"));
  CHECK(speaks_of(refusal(check_source(source.path, source.path + "/a/b", false)), "inside the source"));
  const TempDir links;
  fs::create_directory_symlink(source.dir / "a", links / "link");
  CHECK(speaks_of(refusal(check_source(source.path, (links / "link").string(), true)), "inside the source"));
  CHECK(speaks_of(refusal(check_source(source.path, source.path + "/none", false)), "no directory"));
  CHECK(check_source(source.path + "/a", links.path().string(), false).has_value());
}

TEST_CASE("a source that cannot be written to is refused, unless only reading is wanted") {
  const Source source;
  const TempDir mount;
  const std::string mnt = mount.path().string();
  ::chmod(source.path.c_str(), 0555);
  const auto refused = [&] {
    const auto checked = check_source(source.path, mnt, false);
    const auto opened = source.open();
    return !checked && speaks_of(checked.error().what, "not writable") && !opened &&
           speaks_of(opened.error().what, "not writable") && check_source(source.path, mnt, true);
  };
  // Root may write anywhere.
  if (::geteuid() == 0) {
    ::chmod(mnt.c_str(), 0755);
    CHECK(as_nobody(refused));
  } else {
    CHECK(refused());
  }
  ::chmod(source.path.c_str(), 0755);
}

TEST_CASE("the mount table is read by device, whatever is in the paths") {
  const std::string table =
      "22 1 0:21 / /proc rw,nosuid shared:12 - proc proc rw\n"
      "23 1 0:45 / /srv/a\\040-\\040b rw shared:1 master:2 - fuse.latchfs /nas/x rw,user_id=0\n"
      "24 1 0:46 /sub /srv/c rw - nfs4 nas:/export rw\n"
      "broken line\n";
  const auto type = [&](unsigned major, unsigned minor) {
    std::istringstream in(table);
    return mounted_type(in, major, minor);
  };
  CHECK(type(0, 45) == "fuse.latchfs");
  CHECK(type(0, 46) == "nfs4");
  CHECK(type(0, 4) == "");
  CHECK(type(45, 0) == "");
}
