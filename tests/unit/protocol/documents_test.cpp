#include "latchfs/protocol/documents.hpp"

#include <doctest/doctest.h>

using namespace latchfs;
using namespace latchfs::protocol;
using namespace std::chrono_literals;

namespace {

FormatDocument sample_format() {
  FormatDocument doc;
  doc.share_uuid = "0123456789abcdef0123456789abcdef";
  doc.times = {200ms, 1s, 90s};
  doc.own_inode = 18446744073709551615ULL;
  return doc;
}

SessionInfo sample_info() {
  SessionInfo info;
  info.host = "alpha";
  info.host_id = "rack-7";
  info.boot_id = "b00t";
  info.machine_hash = "cafe";
  info.pid = 4711;
  info.pid_start = 99;
  info.pid_namespace = 4026531836;
  info.uid = 1000;
  info.version = "0.1.0";
  info.mountpoint = "/srv/a \"b\"";
  info.started_us = -5;
  return info;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

Errc code_of(const std::string& format_text) {
  const auto doc = parse_format(format_text);
  REQUIRE_FALSE(doc.has_value());
  return doc.error().code;
}

}  // namespace

TEST_CASE("format: written and read back") {
  CHECK(parse_format(to_text(sample_format())).value() == sample_format());
  // What a later version of the same format adds is not in the way.
  CHECK(parse_format(to_text(sample_format()) + "colour: blue\n").value() == sample_format());
}

TEST_CASE("format: torn anywhere it is corrupt, never another value") {
  const std::string text = to_text(sample_format());
  for (std::size_t n = 0; n < text.size(); ++n) {
    CAPTURE(n);
    CHECK(code_of(text.substr(0, n)) == Errc::corrupt);
  }
}

TEST_CASE("format: what is wrong in it") {
  const std::string text = to_text(sample_format());
  CHECK(code_of("") == Errc::corrupt);
  CHECK(code_of("\n") == Errc::corrupt);
  CHECK(code_of("- a\n- b\n") == Errc::corrupt);
  CHECK(code_of("just text\n") == Errc::corrupt);
  CHECK(code_of("{[}\n") == Errc::corrupt);
  CHECK(code_of(std::string(3000, '[') + "\n") == Errc::corrupt);
  CHECK(code_of(std::string("\0\xff\xfe\n", 4)) == Errc::corrupt);
  CHECK(code_of(text + std::string(5000, '#') + "\n") == Errc::corrupt);
  CHECK(code_of(replaced(text, "format: 1", "format: one")) == Errc::corrupt);
  CHECK(code_of(replaced(text, "format: 1", "format: 0")) == Errc::corrupt);
  CHECK(code_of(replaced(text, "format: 1", "format: {a: 1}")) == Errc::corrupt);
  CHECK(code_of(replaced(text, "beat: 200ms", "beat: 200")) == Errc::corrupt);
  CHECK(code_of(replaced(text, "beat: 200ms", "beat: 1s")) == Errc::corrupt);  // breaks the rules of times
  CHECK(code_of(replaced(text, "0123456789abcdef0123456789abcdef", "0123")) == Errc::corrupt);
  CHECK(code_of(replaced(text, "own_inode: 1", "own_inode: 9991")) == Errc::corrupt);
}

TEST_CASE("format: a newer one is refused, and both versions are named") {
  const auto doc = parse_format(replaced(to_text(sample_format()), "format: 1", "format: 7"));
  REQUIRE_FALSE(doc.has_value());
  CHECK(doc.error().code == Errc::refused);
  CHECK(doc.error().what.find("format 7") != std::string::npos);
  CHECK(doc.error().what.find("format 1") != std::string::npos);
}

TEST_CASE("session info: written and read back") {
  CHECK(parse_session_info(to_text(sample_info())).value() == sample_info());
  CHECK(parse_session_info(to_text(SessionInfo{})).value() == SessionInfo{});
}

TEST_CASE("session info: missing fields are unknown, unknown fields ignored") {
  CHECK(parse_session_info("{}").value() == SessionInfo{});
  CHECK(parse_session_info(R"({"host": "a", "colour": [1, 2]})").value().host == "a");
}

TEST_CASE("session info: torn anywhere it is corrupt") {
  const std::string text = to_text(sample_info());
  for (std::size_t n = 0; n + 1 < text.size(); ++n) {  // without the last newline it is whole
    CAPTURE(n);
    CHECK_FALSE(parse_session_info(text.substr(0, n)).has_value());
  }
}

TEST_CASE("session info: wrong types and sizes are corrupt") {
  for (const std::string& bad :
       {std::string("[]"), std::string("1"), std::string("{\"host\": 1}"), std::string("{\"pid\": -1}"),
        std::string("{\"pid\": 1.5}"), std::string("{\"pid\": \"1\"}"), std::string("{\"pid\": 18446744073709551616}"),
        std::string("{\"started_us\": 18446744073709551615}"), std::string("{\"host\": null}"),
        std::string(200'000, '['), std::string("{\"host\": \"\xff\"}")}) {
    CAPTURE(bad.substr(0, 40));
    const auto info = parse_session_info(bad);
    REQUIRE_FALSE(info.has_value());
    CHECK(info.error().code == Errc::corrupt);
  }
}

TEST_CASE("session info: a path that is not UTF-8 does not stop a session") {
  SessionInfo info = sample_info();
  info.mountpoint = "/mnt/\xff\xfe";
  const auto read = parse_session_info(to_text(info));
  REQUIRE(read.has_value());
  CHECK(read->pid == info.pid);
}

TEST_CASE("one boot of one host") {
  const SessionInfo a = sample_info();
  SessionInfo b = a;
  b.pid = 1;
  CHECK(same_boot(a, b));
  b = a;
  b.host_id = "rack-8";
  CHECK_FALSE(same_boot(a, b));
  b = a;
  b.boot_id = "other";
  CHECK_FALSE(same_boot(a, b));
  b = a;
  b.pid_namespace = 1;
  CHECK_FALSE(same_boot(a, b));
  SessionInfo unknown = a, unknown2 = a;
  unknown.boot_id = unknown2.boot_id = "";
  CHECK_FALSE(same_boot(unknown, unknown2));
  unknown = unknown2 = a;
  unknown.pid_namespace = unknown2.pid_namespace = 0;
  CHECK_FALSE(same_boot(unknown, unknown2));
  unknown = unknown2 = a;
  unknown.host_id = unknown2.host_id = "";
  CHECK(same_boot(unknown, unknown2));
}
