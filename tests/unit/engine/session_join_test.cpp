#include <doctest/doctest.h>

#include <algorithm>

#include "latchfs/protocol/layout.hpp"
#include "support/session_host.hpp"

using namespace latchfs;
using namespace latchfs::testing;
using namespace std::chrono_literals;

namespace {

bool has_prefix(const FakeDisk& disk, const std::string& prefix) {
  const auto paths = disk.paths();
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& p) { return p.rfind(prefix, 0) == 0; });
}

const std::vector<std::string> kEmpty{"beats", "format", "inbox", "locks", "sessions"};

}  // namespace

TEST_CASE(
    "a session opens in the order that a half-made one can be swept in, and is usable only after a confirmed beat") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  std::vector<std::string> order;
  bool early = false;
  host.share.set_hook([&](const FakeShare::Call& call) {
    early = early || host.keeper.current().has_value() || host.keeper.lease_valid();
    if (call.op != "list") order.push_back(std::string(call.op) + " " + std::string(call.dir.substr(0, 5)));
    return FakeShare::Fault{};
  });
  CHECK_FALSE(host.keeper.current().has_value());
  REQUIRE(host.start().has_value());
  host.share.set_hook({});
  CHECK_FALSE(early);
  const std::vector<std::string> wanted{"make_folder inbox", "make_file beats", "publish_file sessi",
                                        "rename beats",      "read_file ",      "facts beats"};
  CHECK(order == wanted);

  REQUIRE(host.told.count("joined") == 1);
  const SessionId sid = host.sid();
  CHECK(eventually([] { return keeper_threads() == 2; }));
  const auto joined = host.told.all("joined")[0];
  CHECK(joined.sid == sid);
  CHECK(joined.lease_valid);
  CHECK(joined.current == sid);
  CHECK(disk.exists("inbox/" + sid.text));
  CHECK(has_prefix(disk, "beats/" + sid.text + "."));
  std::string text;
  REQUIRE(disk.read("sessions/" + sid.text, 10'000, text) == 0);
  const auto info = protocol::parse_session_info(text).value();
  CHECK(info.pid == static_cast<std::uint64_t>(::getpid()));
  CHECK(info.pid_start != 0);
  CHECK(info.pid_namespace != 0);
  CHECK_FALSE(info.boot_id.empty());
  CHECK_FALSE(info.host.empty());
  CHECK(info.mountpoint == "/mnt/x");
}

TEST_CASE("beats go on, each confirms the lease from its start") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  // The clock moves only while a rename is under way: a lease counted from its end would be longer.
  host.share.set_hook([&](const FakeShare::Call& call) {
    if (call.op == "rename") host.clock.advance(30ms);
    return FakeShare::Fault{};
  });
  std::atomic<int> wrong{0};
  const auto plain = host.told.look;
  host.told.look = [&](Told::Event& event) {
    plain(event);
    if (event.what != "dead" && host.lease.until() != host.clock.lease_now() - 30ms + 500ms) ++wrong;
  };
  REQUIRE(host.start().has_value());
  REQUIRE(host.beats(4));
  CHECK(wrong == 0);
  CHECK(host.told.count("gap") == 0);
  CHECK(host.told.count("lost") == 0);
  CHECK(host.keeper.stop(30s));
}

TEST_CASE("a clean end leaves nothing but what was there before") {
  for (const auto form : {share::EntryForm::directory, share::EntryForm::file}) {
    FakeDisk disk;
    lay_out(disk);
    SessionHost host(disk, "", form);
    REQUIRE(host.start().has_value());
    REQUIRE(disk.make("inbox/" + host.sid().text + "/r.1.2", true, "") == 0);  // a note that nobody answered
    CHECK(host.keeper.stop(30s));
    CHECK(disk.paths() == kEmpty);
    CHECK_FALSE(host.keeper.current().has_value());
    CHECK_FALSE(host.keeper.lease_valid());
    CHECK(host.keeper.stop(30s));
    CHECK(host.told.count("lost") == 0);
    CHECK_FALSE(host.keeper.learn().has_value());
  }
}

TEST_CASE("a keeper that was never started ends without a word") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  CHECK(host.keeper.stop(1s));
  CHECK(disk.paths() == kEmpty);
}

TEST_CASE("each call of opening and ending may lose its reply") {
  for (const char* op : {"make_folder", "make_file", "publish_file", "rename", "remove_entry"}) {
    CAPTURE(std::string(op));
    FakeDisk disk;
    lay_out(disk);
    SessionHost host(disk);
    std::atomic<int> seen{0};
    host.share.set_hook([&, op](const FakeShare::Call& call) {
      // Every second call of the kind, as long as it is not a fault of every try.
      const bool lose = call.op == op && seen < 8 && seen++ % 2 == 0;
      return lose ? FakeShare::Fault{0, ECONNABORTED} : FakeShare::Fault{};
    });
    REQUIRE(host.start().has_value());
    REQUIRE(host.beats(3));
    CHECK(host.told.count("joined") == 1);
    CHECK(host.told.count("lost") == 0);
    CHECK(host.keeper.stop(30s));
    CHECK(disk.paths() == kEmpty);
  }
}

TEST_CASE("a start that fails says why and leaves no names") {
  for (const char* op : {"make_folder", "make_file", "publish_file"}) {
    CAPTURE(op);
    FakeDisk disk;
    lay_out(disk);
    SessionHost host(disk);
    host.share.set_hook([&, op](const FakeShare::Call& call) {
      return call.op == op ? FakeShare::Fault{EDQUOT, 0} : FakeShare::Fault{};
    });
    const auto started = host.start();
    REQUIRE_FALSE(started.has_value());
    CHECK(is_errno(started.error(), EDQUOT));
    CHECK(disk.paths() == kEmpty);
    CHECK(host.told.count("joined") == 0);
    CHECK(host.keeper.stop(1s));
  }
}

TEST_CASE("lease times that were changed while the session opened are not run on") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  host.share.set_hook([&](const FakeShare::Call& call) {
    if (call.op == "make_file") {
      protocol::FormatDocument doc;
      doc.share_uuid = std::string(32, '0');
      REQUIRE(disk.write("format", protocol::to_text(doc)) == 0);
    }
    return FakeShare::Fault{};
  });
  const auto started = host.start();
  REQUIRE_FALSE(started.has_value());
  CHECK(started.error().code == Errc::refused);
  CHECK(disk.paths() == kEmpty);
}

TEST_CASE("tickets grow, and follow the server's clock") {
  FakeDisk disk;
  lay_out(disk);
  disk.set_clock_skew(1h);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  const auto here = std::chrono::duration_cast<std::chrono::microseconds>(wall).count();
  Ticket last = host.keeper.next_ticket();
  const auto ahead = static_cast<std::int64_t>(last.value) - here;
  CHECK(ahead > 59LL * 60 * 1'000'000);
  CHECK(ahead < 61LL * 60 * 1'000'000);
  for (int i = 0; i < 100'000; ++i) {
    const Ticket next = host.keeper.next_ticket();
    REQUIRE(next > last);
    last = next;
  }
}
