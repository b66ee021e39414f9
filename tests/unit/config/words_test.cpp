#include <doctest/doctest.h>

#include "config/table.hpp"
#include "latchfs/base/duration.hpp"

using namespace latchfs;
using namespace latchfs::config;

namespace {

std::string joined(const std::vector<Setting>& settings) {
  std::string out;
  for (const Setting& s : settings) out += "[" + s.key + (s.value ? "|" + *s.value : "") + "]";
  return out;
}

std::string refusal(const Setting& setting) {
  Options options;
  const auto applied = apply(setting, options);
  REQUIRE_FALSE(applied.has_value());
  CHECK(applied.error().code == Errc::refused);
  return applied.error().what;
}

}  // namespace

TEST_CASE("words are split at commas, and a backslash takes the next character as it is") {
  CHECK(joined(split_words("")) == "");
  CHECK(joined(split_words("ro")) == "[ro]");
  CHECK(joined(split_words("ro,beat=5s,debug")) == "[ro][beat|5s][debug]");
  CHECK(joined(split_words(",,ro,,")) == "[ro]");
  CHECK(joined(split_words("config=/a\\,b,ro")) == "[config|/a,b][ro]");
  CHECK(joined(split_words("config=/a\\\\,ro")) == "[config|/a\\][ro]");
  CHECK(joined(split_words("config=/a=b")) == "[config|/a=b]");
  CHECK(joined(split_words("config=/a\\054b")) == "[config|/a,b]");
  CHECK(joined(split_words("config=/a\\08")) == "[config|/a08]");
  CHECK(joined(split_words("config=")) == "[config|]");
  CHECK(joined(split_words("=x")) == "[|x]");
  CHECK(joined(split_words("ro\\")) == "[ro\\]");
}

TEST_CASE("an unknown word is refused with the nearest known one, or with none when none is near") {
  CHECK(refusal({"baet", "5s"}) == "unknown option 'baet': did you mean 'beat'?");
  CHECK(refusal({"fence-after", "5s"}) == "unknown option 'fence-after': did you mean 'fence_after'?");
  CHECK(refusal({"hostid", "a"}) == "unknown option 'hostid': did you mean 'host_id'?");
  CHECK(refusal({"qqqqqqqq", {}}) == "unknown option 'qqqqqqqq'");
  CHECK(refusal({"", "x"}) == "unknown option ''");
}

TEST_CASE("a value is read by the kind of its row") {
  CHECK(refusal({"beat", "5"}).find("option 'beat': '5' is no duration") == 0);
  CHECK(refusal({"beat", {}}) == "option 'beat' needs a value: beat=TIME");
  CHECK(refusal({"beat", ""}) == "option 'beat' needs a value: beat=TIME");
  CHECK(refusal({"on_expiry", "wai"}) == "option 'on_expiry' is one of wait|fail, not 'wai'");
  CHECK(refusal({"on_expiry", "wait|fail"}).find("is one of") != std::string::npos);
  CHECK(refusal({"debug", "yes"}) == "option 'debug' is on or off: true or false, not 'yes'");
  CHECK(refusal({"host_id", "a b"}).find("option 'host_id' is a name") == 0);
  CHECK(refusal({"host_id", std::string(65, 'a')}).find("option 'host_id' is a name") == 0);

  Options options;
  CHECK(apply({"beat", "200ms"}, options).has_value());
  CHECK(apply({"host_id", "Node-7.example_x"}, options).has_value());
  CHECK(apply({"on_expiry", "fail"}, options).has_value());
  CHECK(apply({"debug", "false"}, options).has_value());
  CHECK(options.beat == std::chrono::milliseconds(200));
  CHECK(options.host_id == "Node-7.example_x");
  CHECK(options.fail_on_expiry);
  CHECK_FALSE(options.debug);
}

TEST_CASE("a mount word is handed on, dropped, or refused with its reason") {
  Options options;
  for (const char* word : {"dev", "nosuid", "noatime", "sync", "default_permissions"})
    CHECK(apply({word, {}}, options).has_value());
  CHECK(options.fuse_options == std::vector<std::string>{"dev", "nosuid", "noatime", "sync", "default_permissions"});
  for (const char* word : {"_netdev", "nofail", "relatime", "defaults", "users", "nouser", "noauto",
                           "x-systemd.automount", "X-mount.mkdir"}) {
    CAPTURE(word);
    CHECK(apply({word, {}}, options).has_value());
  }
  CHECK(apply({"comment", "anything"}, options).has_value());
  CHECK(apply({"x-systemd.requires-mounts-for", "/srv/raw"}, options).has_value());
  CHECK(options.fuse_options.size() == 5);
  for (const char* word : {"allow_other", "allow_root", "auto_unmount", "no_remote_lock", "no_remote_flock",
                           "no_remote_posix_lock", "writeback_cache", "direct_io", "remount"}) {
    CHECK(refusal({word, {}}).find("' is refused: ") != std::string::npos);
  }
  CHECK(refusal({"noatime", "1"}) == "option 'noatime' takes no value");
}

TEST_CASE("of ro and rw the last one counts, for latchfs and for libfuse") {
  Options options;
  CHECK(apply({"ro", {}}, options).has_value());
  CHECK(options.read_only);
  CHECK(options.fuse_options.back() == "ro");
  CHECK(apply({"rw", {}}, options).has_value());
  CHECK_FALSE(options.read_only);
  CHECK(options.fuse_options.back() == "rw");
}

TEST_CASE("the defaults that the table tells are the ones in Options") {
  Options changed;
  changed.hold_limit = {};
  changed.log_level = "error";
  changed.fail_on_expiry = true;
  for (const Row& row : rows()) {
    CHECK_FALSE(row.help.empty());
    if (row.kind == Kind::name || row.default_text.find(' ') != std::string_view::npos || row.default_text.empty())
      continue;
    REQUIRE(apply({std::string(row.word), std::string(row.default_text)}, changed).has_value());
  }
  CHECK(changed.hold_limit == Options{}.hold_limit);
  CHECK(changed.log_level == Options{}.log_level);
  CHECK(changed.fail_on_expiry == Options{}.fail_on_expiry);
}
