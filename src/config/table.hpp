#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latchfs/config/options.hpp"

/// The one table of options. -o words, long flags, YAML keys and the help text all come from it.
namespace latchfs::config {

enum class Kind { flag, duration, name, text, choice };

/// A value that was read by the rule of its row's kind; only the member of that kind is set.
struct Value {
  bool flag = false;
  Nanos duration{};
  std::string text{};
};

struct Row {
  std::string_view word;  ///< the -o word, the YAML key, and with "--" the long flag
  char letter;            ///< short flag, or 0
  Kind kind;
  std::string_view value;         ///< how the help names the value; for a choice its words, separated by '|'
  std::string_view default_text;  ///< what it is when not given
  std::string_view help;
  void (*set)(Options&, const Value&);
};
const std::vector<Row>& rows();
/// The row of a word, or null.
const Row* find_row(std::string_view word);

/// Words of mount(8) and libfuse that are no options of latchfs.
enum class Fate {
  pass,    ///< libfuse 3.14 takes it: handed on
  drop,    ///< means something to mount(8) or systemd only
  refuse,  ///< would break a promise of latchfs; `reason` says which
};
struct MountWord {
  std::string_view word;  ///< ends with '*' where it is a prefix
  Fate fate;
  std::string_view reason;
};
/// The entry of a mount word, or null.
const MountWord* find_mount_word(std::string_view word);

/// One option as it was given: "key" or "key=value".
struct Setting {
  std::string key;
  std::optional<std::string> value{};
};
/// Splits the text of one -o at its commas; `\` takes the next character as it is, `\ooo` is an octal byte (as libfuse
/// has it).
std::vector<Setting> split_words(std::string_view text);

/// Puts one setting into `options`. Errc::refused with one sentence.
Result<void> apply(const Setting& setting, Options& options);
/// "unknown option 'x': did you mean 'y'?"
std::string unknown_option(std::string_view word);

}  // namespace latchfs::config
