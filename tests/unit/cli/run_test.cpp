#include "latchfs/cli/run.hpp"

#include <nlohmann/json.hpp>
#include <sstream>

#include "unit/cli/fixture.hpp"

using namespace latchfs;
using namespace latchfs::cli;
using protocol::EntryKind;
using protocol::Mode;

namespace {

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

Outcome latchctl(const std::vector<std::string>& args) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = run(args, out, err);
  return {code, out.str(), err.str()};
}

protocol::SessionInfo info_of(const std::string& host, const std::string& host_id) {
  protocol::SessionInfo info;
  info.host = host;
  info.host_id = host_id;
  info.pid = 4711;
  info.version = "0.1.0";
  info.mountpoint = "/srv/share";
  info.started_us = 1700000000000001;
  return info;
}

}  // namespace

TEST_CASE("locks as a table") {
  const ControlDirectory dir;
  const SessionId a = dir.add_session('a', info_of("alpha", ""));
  dir.add_lock(EntryKind::held, claim(0x1f, Mode::write, ByteRange::whole(), 1700000000000000, a));
  const Outcome table = latchctl({"locks", dir.source()});
  CHECK(table.code == 0);
  CHECK(table.err.empty());
  CHECK(table.out.find("HOST ") == 0);
  CHECK(latchctl({"locks", "-n", "-r", dir.source()}).out ==
        "alpha " + a.text + " held fcntl WRITE 0 EOF 31 2023-11-14T22:13:20.000000Z\n");
  dir.add_lock(EntryKind::queued, claim(0x20, Mode::read, {16, 31}, 0, a));
  CHECK(latchctl({"locks", "-n", "-r", dir.source(), "-o", "FILEID,STATE,MODE,START,END,REQUESTED"})
            .out.find("\n32 waiting READ 16 31 -\n") != std::string::npos);
  CHECK(latchctl({"locks", dir.source(), "-r", "-o", "end,STATE"}).out == "END STATE\nEOF held\n31 waiting\n");
}

TEST_CASE("locks as JSON") {
  const ControlDirectory dir;
  const SessionId a = dir.add_session('a', info_of("alpha", "rack-7"));
  protocol::Claim held = claim(0x1f, Mode::read, ByteRange::whole(), 1700000000000000, a);
  held.space = protocol::Space::flock;
  dir.add_lock(EntryKind::held, held);
  const Outcome json = latchctl({"locks", "-J", dir.source()});
  CHECK(json.code == 0);
  const auto expected = nlohmann::json::parse(
      R"({"schema": 1, "locks": [{"host": "rack-7", "session": "aaaaaaaaaaaaaaaaaaaa", "state": "held", "space": "flock", "mode": "READ",
          "start": 0, "end": 9223372036854775807, "fileid": 31, "requested": "2023-11-14T22:13:20.000000Z"}]})");
  CHECK(nlohmann::json::parse(json.out) == expected);
  CHECK(nlohmann::json::parse(latchctl({"locks", "-J", "-o", "MODE", dir.source()}).out)["locks"][0].size() == 1);
}

TEST_CASE("nothing there is an empty table and an empty array") {
  const ControlDirectory dir;
  CHECK(latchctl({"locks", dir.source()}).out.empty());
  CHECK(latchctl({"sessions", dir.source()}).code == 0);
  CHECK(nlohmann::json::parse(latchctl({"sessions", "-J", dir.source()}).out) ==
        nlohmann::json::parse(R"({"schema": 1, "sessions": []})"));
}

TEST_CASE("sessions as a table and as JSON") {
  const ControlDirectory dir;
  const SessionId a = dir.add_session('a', info_of("alpha", ""));
  const SessionId b = dir.add_session('b', {});
  dir.kill(b);
  const std::string columns = "HOST,SESSION,STATE,BEAT,PID,VERSION,MOUNTPOINT,STARTED";
  CHECK(latchctl({"sessions", "-n", "-r", "-o", columns, dir.source()}).out ==
        "- " + b.text + " dead - - - - -\n" + "alpha " + a.text +
            " live 7 4711 0.1.0 /srv/share 2023-11-14T22:13:20.000001Z\n");
  const auto json = nlohmann::json::parse(latchctl({"sessions", "-J", dir.source()}).out);
  CHECK(json["schema"] == 1);
  const auto& dead = json["sessions"][0];
  const auto& live = json["sessions"][1];
  CHECK(live["pid"] == 4711);
  CHECK(live["beat"] == 7);
  CHECK(live["age"].is_number());
  CHECK(live["started"] == "2023-11-14T22:13:20.000001Z");
  for (const char* key : {"host", "beat", "age", "pid", "version", "mountpoint", "started"}) {
    CAPTURE(key);
    CHECK(dead.contains(key));
    CHECK(dead[key].is_null());
  }
}

TEST_CASE("what a hostile session wrote cannot steer the terminal") {
  const ControlDirectory dir;
  dir.add_session('a', info_of("a\x1b[2J\nforged", ""));
  for (const char* style : {"-n", "-nr"}) {
    const std::string table = latchctl({"sessions", style, "-o", "HOST", dir.source()}).out;
    CHECK(table.find('\x1b') == std::string::npos);
    CHECK(table.find("a\\x1b[2J\\x0aforged") != std::string::npos);
    CHECK(std::count(table.begin(), table.end(), '\n') == 1);
  }
  const std::string json = latchctl({"sessions", "-J", dir.source()}).out;
  CHECK(json.find('\x1b') == std::string::npos);
  CHECK(nlohmann::json::parse(json)["sessions"][0]["host"] == "a\x1b[2J\nforged");
}

TEST_CASE("exit codes: 1 for a problem on the share, 2 for wrong usage, 3 for what cannot be reached") {
  const ControlDirectory dir;
  CHECK(latchctl({}).code == 2);
  CHECK(latchctl({"lock", dir.source()}).code == 2);
  CHECK(latchctl({"locks"}).code == 2);
  CHECK(latchctl({"locks", "--nonsense", dir.source()}).code == 2);
  const Outcome column = latchctl({"locks", "-o", "HOST,COLOR", dir.source()});
  CHECK(column.code == 2);
  CHECK(column.err == "latchctl: there is no column 'COLOR'\n");
  CHECK(column.out.empty());
  CHECK(latchctl({"locks", dir.source() + "/not-there"}).code == 3);
  CHECK(latchctl({"locks", (dir.control() / "locks").string()}).code == 3);
  std::filesystem::create_directories(dir.control() / "locks/0a3/c.nonsense");
  const Outcome unknown = latchctl({"locks", dir.source()});
  CHECK(unknown.code == 1);
  CHECK(unknown.err.find("latchctl: locks/0a3/c.nonsense: ") == 0);
  dir.write("format", "format: 2\n");
  CHECK(latchctl({"sessions", dir.source()}).code == 1);
}

TEST_CASE("a control directory behind a symbolic link is not read") {
  const ControlDirectory dir;
  const ControlDirectory other;
  std::filesystem::remove_all(other.control());
  std::filesystem::create_directory_symlink(dir.control(), other.control());
  CHECK(latchctl({"locks", other.source()}).code == 3);
}

TEST_CASE("help and version") {
  CHECK(latchctl({"--help"}).code == 0);
  CHECK(latchctl({"--help"}).out.find("sessions") != std::string::npos);
  CHECK(latchctl({"locks", "--help"}).out.find("--noheadings") != std::string::npos);
  const Outcome version = latchctl({"--version"});
  CHECK(version.code == 0);
  CHECK(version.out == "latchctl " LATCHFS_VERSION "\n");
}
