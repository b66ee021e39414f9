#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "config/table.hpp"
#include "latchfs/config/options.hpp"

using namespace latchfs;
using namespace latchfs::config;
using namespace std::chrono_literals;

namespace {

Options options_of(const std::vector<std::string>& args) {
  const auto line = parse_command_line(args);
  REQUIRE_MESSAGE(line.has_value(), describe(line.error()));
  CHECK(line->action == Action::mount);
  return line->options;
}

std::string refusal(const std::vector<std::string>& args) {
  const auto line = parse_command_line(args);
  REQUIRE_FALSE(line.has_value());
  return describe(line.error());
}

// A file in a directory of its own, both removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    std::string pattern = (std::filesystem::temp_directory_path() / "latchfs-config-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    dir_ = pattern;
    std::ofstream(path()) << content;
  }
  ~TemporaryFile() { std::filesystem::remove_all(dir_); }
  std::string path() const { return (dir_ / "share.yaml").string(); }

 private:
  std::filesystem::path dir_;
};

}  // namespace

TEST_CASE("paths may stand anywhere, and options in all three ways") {
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"/src", "/mnt", "-o", "beat=2s,ro"},
           {"-o", "beat=2s", "/src", "-o", "ro", "/mnt"},
           {"--beat", "2s", "/src", "/mnt", "--ro"},
           {"--beat=2s", "-oro", "--", "/src", "/mnt"},
           {"-n", "-s", "-v", "/src", "/mnt", "-o", "rw,beat=2s,_netdev,ro"},
       }) {
    const Options options = options_of(args);
    CHECK(options.source == "/src");
    CHECK(options.mountpoint == "/mnt");
    CHECK(options.beat == Nanos(2s));
    CHECK(options.read_only);
    CHECK_FALSE(options.foreground);
  }
}

TEST_CASE("a path with brackets, commas or backslashes stays as it is") {
  const Options options = options_of({"/a,[b],c\\d", "[/m]"});
  CHECK(options.source == "/a,[b],c\\d");
  CHECK(options.mountpoint == "[/m]");
}

TEST_CASE("debug implies foreground and full logs") {
  CHECK(options_of({"-f", "/s", "/m"}).foreground);
  const Options options = options_of({"-d", "/s", "/m"});
  CHECK(options.debug);
  CHECK(options.foreground);
  CHECK(options.log_level == "debug");
  CHECK(options_of({"-o", "debug", "/s", "/m"}).foreground);
  CHECK(options_of({"-fo", "debug", "/s", "/m"}).debug);
}

TEST_CASE("the last of several values on the command line counts, however it was written") {
  CHECK(options_of({"--beat", "2s", "-o", "beat=3s", "/s", "/m"}).beat == Nanos(3s));
  CHECK(options_of({"-o", "beat=3s", "/s", "--beat", "2s", "/m"}).beat == Nanos(2s));
  CHECK(options_of({"--beat", "2s", "--beat", "4s", "-o", "beat=3s", "--beat=5s", "/s", "/m"}).beat == Nanos(5s));
  CHECK(options_of({"--fence-after", "7s", "--fence_after", "8s", "/s", "/m"}).fence_after == Nanos(8s));
}

TEST_CASE("every row of the table is a long flag and an -o word") {
  for (const Row& row : rows()) {
    const std::string word(row.word);
    CAPTURE(word);
    if (row.word == "config") continue;
    const std::string value = row.kind == Kind::duration ? "90s"
                              : row.kind == Kind::choice ? std::string(row.value.substr(0, row.value.find('|')))
                                                         : "name";
    if (row.kind == Kind::flag) {
      CHECK(parse_command_line({"--" + word, "/s", "/m"}).has_value());
      CHECK(parse_command_line({"-o", word, "/s", "/m"}).has_value());
    } else {
      CHECK(parse_command_line({"--" + word, value, "/s", "/m"}).has_value());
      CHECK(parse_command_line({"-o", word + "=" + value, "/s", "/m"}).has_value());
    }
  }
}

TEST_CASE("built-in values give way to the file, and the file to the command line") {
  const TemporaryFile file("beat: 2s\nhost_id: from-file\nhold_limit: 1m\n");
  for (const std::vector<std::string>& named : std::vector<std::vector<std::string>>{
           {"-o", "host_id=mine,config=" + file.path()}, {"--host-id", "mine", "--config", file.path()}}) {
    std::vector<std::string> args{"/s", "/m"};
    args.insert(args.end(), named.begin(), named.end());
    const Options options = options_of(args);
    CHECK(options.beat == Nanos(2s));
    CHECK(options.host_id == "mine");
    CHECK(options.hold_limit == Nanos(1min));
    CHECK(options.log_level == "info");
    CHECK(options.config_file == file.path());
  }
}

TEST_CASE("a wrong configuration file is refused with its name and line") {
  const TemporaryFile file("beat: 2s\nbraek_after: 9s\n");
  CHECK(refusal({"/s", "/m", "-o", "config=" + file.path()}) ==
        file.path() + ":2: unknown option 'braek_after': did you mean 'break_after'?");
  CHECK(refusal({"/s", "/m", "-o", "config=/nonexistent/x.yaml"}) == "/nonexistent/x.yaml: No such file or directory");
  CHECK(refusal({"/s", "/m", "-o", "config=/tmp"}) == "/tmp: Is a directory");
  CHECK(refusal({"/s", "/m", "-o", "config="}) == "option 'config' needs a value: config=FILE");
  const TemporaryFile big(std::string(70000, '#'));
  CHECK(refusal({"/s", "/m", "-o", "config=" + big.path()}).find("at most 65536 bytes") != std::string::npos);
}

TEST_CASE("wrong command lines are refused with one sentence") {
  CHECK(refusal({}).find("two paths are needed") == 0);
  CHECK(refusal({"/s"}).find("two paths are needed") == 0);
  CHECK(refusal({"", "/m"}) == "SOURCE and MOUNTPOINT cannot be empty");
  CHECK(refusal({"/s", "/m", "/x"}) == "too many arguments: '/x' comes after SOURCE and MOUNTPOINT");
  CHECK(refusal({"/s", "/m", "--bet", "2s"}) == "unknown option 'bet': did you mean 'beat'?");
  CHECK(refusal({"/s", "/m", "--allow-other"}).find("option 'allow_other' is refused: ") == 0);
  CHECK(refusal({"/s", "/m", "-o", "allow_other"}).find("option 'allow_other' is refused: ") == 0);
  CHECK(refusal({"/s", "/m", "-x"}) == "unknown option 'x'");
  CHECK(refusal({"--", "/s", "/m", "--ro"}).find("too many arguments: '--ro'") == 0);
  CHECK_FALSE(refusal({"/s", "/m", "-o"}).empty());
  CHECK_FALSE(refusal({"/s", "/m", "--beat"}).empty());
}

TEST_CASE("help and version need nothing else") {
  CHECK(parse_command_line({"-h"})->action == Action::help);
  CHECK(parse_command_line({"--help", "--nonsense"})->action == Action::help);
  CHECK(parse_command_line({"-V"})->action == Action::version);
  CHECK(parse_command_line({"--version", "/s"})->action == Action::version);
}

TEST_CASE("the help names every option with its default and fits a terminal") {
  const std::string text = help_text();
  for (const Row& row : rows()) {
    CAPTURE(row.word);
    CHECK(text.find("  " + std::string(row.word)) != std::string::npos);
  }
  CHECK(text.find("(default: 10m)") != std::string::npos);
  std::size_t start = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    CHECK(end - start <= 120);
    start = end + 1;
  }
}
