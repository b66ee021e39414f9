#include "config/yaml_file.hpp"

#include <doctest/doctest.h>

using namespace latchfs;
using namespace latchfs::config;
using namespace std::chrono_literals;

namespace {

std::string refusal(const std::string& text) {
  Options options;
  const auto applied = apply_yaml(text, "f.yaml", options);
  REQUIRE_FALSE(applied.has_value());
  CHECK(applied.error().code == Errc::refused);
  return applied.error().what;
}

}  // namespace

TEST_CASE("a file of options is read") {
  Options options;
  const std::string text =
      "# times\nbeat: 2s\n'fence_after': \"8s\"\nro: true\non_expiry: fail\ndefault_permissions: false\n";
  REQUIRE(apply_yaml(text, "f.yaml", options).has_value());
  CHECK(options.beat == Nanos(2s));
  CHECK(options.fence_after == Nanos(8s));
  CHECK(options.read_only);
  CHECK(options.fail_on_expiry);
  CHECK(options.fuse_options == std::vector<std::string>{"ro"});
  for (const char* empty : {"", "\n", "# nothing\n", "---\n", "~", "{}"}) {
    CAPTURE(empty);
    CHECK(apply_yaml(empty, "f.yaml", options).has_value());
  }
}

TEST_CASE("errors name the file and the line") {
  CHECK(refusal("beat: 2s\nbaet: 5s\n") == "f.yaml:2: unknown option 'baet': did you mean 'beat'?");
  CHECK(refusal("\n\nbeat: soon\n").find("f.yaml:3: option 'beat': 'soon' is no duration") == 0);
  CHECK(refusal("beat: 2s\nbeat: 3s\n") == "f.yaml:2: option 'beat' is given twice");
  CHECK(refusal("beat:\n") == "f.yaml:1: option 'beat' needs a value: beat=TIME");
  CHECK(refusal("ro:\n") == "f.yaml:1: option 'ro' is on or off: true or false, not ''");
  CHECK(refusal("ro: yes\n") == "f.yaml:1: option 'ro' is on or off: true or false, not 'yes'");
  CHECK(refusal("ro: true\nallow_other: true\n").find("f.yaml:2: option 'allow_other' is refused: ") == 0);
  CHECK(refusal("nosuid: true\n").find("f.yaml:1: unknown option 'nosuid'") == 0);
  CHECK(refusal("config: /x\n") == "f.yaml:1: a configuration file cannot name another one");
  CHECK(refusal("beat: [1s, 2s]\n") == "f.yaml:1: option 'beat' takes one plain value");
  CHECK(refusal("[a]: b\n") == "f.yaml:1: an option is written 'word: value'");
  CHECK(refusal("- beat\n") == "f.yaml:1: the file must be a list of 'word: value' lines");
  CHECK(refusal("beat: 2s\n---\nbeat: 3s\n").find("f.yaml:2: one list") == 0);
  CHECK(refusal(",:").find("f.yaml:1: ") == 0);  // yaml-cpp alone would read documents from it for ever
  CHECK(refusal("beat: 2s\nro: *missing\n").find("f.yaml:2: ") == 0);
  CHECK(refusal("a: b: c\n").find("f.yaml:1: ") == 0);
  CHECK(refusal(std::string(3000, '[')).find("f.yaml:1: ") == 0);
}
