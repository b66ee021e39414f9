#include "latchfs/config/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "table.hpp"
#include "yaml_file.hpp"

namespace latchfs::config {
namespace {

constexpr std::size_t kHelpColumn = 34;
constexpr std::size_t kHelpWidth = 100;

std::string flag_names(const Row& row) {
  std::string names = fmt::format("--{}", row.word);
  std::string dashed = names;
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  if (dashed != names) names += "," + dashed;
  return row.letter == 0 ? names : fmt::format("-{},{}", row.letter, names);
}

// What the command line said, in its order.
struct Words {
  bool help = false;
  bool version = false;
  std::vector<Setting> settings{};
  std::vector<std::string> paths{};
};

// The command line's grammar: the flags of the table, the letters that mount helpers pass, and two paths anywhere
// between them.
class Grammar {
 public:
  Grammar() {
    app_.set_help_flag();
    app_.allow_extras();
    app_.add_flag("-h,--help", help_);
    app_.add_flag("-V,--version", version_);
    app_.add_flag("-n,-s,-v", ignored_);  // no mtab, sloppy, verbose: mount(8) may pass them to its helpers
    words_ = app_.add_option("-o", unused_)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    for (const Row& row : rows()) {
      CLI::Option* option =
          row.kind == Kind::flag ? app_.add_flag(flag_names(row)) : app_.add_option(flag_names(row), unused_);
      options_[option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)] = &row;
    }
    source_ = app_.add_option("SOURCE", unused_);
    mountpoint_ = app_.add_option("MOUNTPOINT", unused_);
  }

  Result<Words> parse(std::vector<std::string> args) {
    std::reverse(args.begin(), args.end());  // CLI11 takes a vector from its end
    try {
      app_.parse(std::move(args));
    } catch (const CLI::ParseError& e) {
      return fail(Errc::refused, e.what());
    }
    Words words;
    words.help = help_ > 0;
    words.version = version_ > 0;
    if (words.help || words.version) return words;
    if (const std::string wrong = unexpected(app_.remaining()); !wrong.empty()) return fail(Errc::refused, wrong);
    collect_settings(words);
    for (const CLI::Option* path : {source_, mountpoint_}) {
      if (path->count() > 0) words.paths.push_back(path->results().front());
    }
    return words;
  }

 private:
  // Says what is wrong with the first argument that found no place; CLI11 leaves a "--" among them.
  static std::string unexpected(const std::vector<std::string>& left) {
    bool paths_only = false;
    for (const std::string& arg : left) {
      if (!paths_only && arg.size() > 1 && arg[0] == '-' && arg != "--") return unexpected_option(arg);
      if (paths_only || arg != "--") {
        return fmt::format("too many arguments: '{}' comes after SOURCE and MOUNTPOINT", arg);
      }
      paths_only = true;
    }
    return {};
  }

  static std::string unexpected_option(const std::string& arg) {
    std::string word = arg.substr(std::min(arg.find_first_not_of('-'), arg.size()));
    word = word.substr(0, word.find('='));
    std::replace(word.begin(), word.end(), '-', '_');
    const MountWord* known = find_mount_word(word);
    if (known == nullptr || known->fate != Fate::refuse) return unknown_option(word);
    return fmt::format("option '{}' is refused: {}", word, known->reason);
  }

  // parse_order() names an option once for each time it was given, so the n-th time takes its n-th result.
  void collect_settings(Words& words) {
    std::map<const CLI::Option*, std::size_t> taken;
    for (const CLI::Option* option : app_.parse_order()) {
      const auto row = options_.find(option);
      if (option != words_ && row == options_.end()) continue;
      const std::string& value = option->results().at(taken[option]++);
      if (option != words_) {
        words.settings.push_back(Setting{std::string(row->second->word), value});
        continue;
      }
      for (Setting& setting : split_words(value)) words.settings.push_back(std::move(setting));
    }
  }

  CLI::App app_{};
  int help_ = 0;
  int version_ = 0;
  int ignored_ = 0;
  std::string unused_{};
  CLI::Option* words_ = nullptr;
  CLI::Option* source_ = nullptr;
  CLI::Option* mountpoint_ = nullptr;
  std::map<const CLI::Option*, const Row*> options_{};
};

std::string named_config_file(const std::vector<Setting>& settings) {
  std::string file;
  for (const Setting& setting : settings) {
    if (setting.key == "config") file = setting.value.value_or("");
  }
  return file;
}

// Breaks help text into lines that fit beside the column of words.
std::string wrapped(std::string_view text) {
  std::string out;
  std::size_t column = kHelpColumn;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (column + word.size() > kHelpWidth) {
      out += fmt::format("\n{:{}}", "", kHelpColumn);
      column = kHelpColumn;
    } else if (column != kHelpColumn) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string help_line(const Row& row) {
  const std::string_view equals = row.value.empty() ? "" : "=";
  const std::string left = row.letter == 0 ? fmt::format("  {}{}{}", row.word, equals, row.value)
                                           : fmt::format("  {}{}{} or -{}", row.word, equals, row.value, row.letter);
  const std::string standard = row.default_text.empty() ? "" : fmt::format(" (default: {})", row.default_text);
  const std::string_view gap = left.size() < kHelpColumn ? "" : "\n";
  return fmt::format("{}{}{:{}}{}\n", left, gap, "", gap.empty() ? kHelpColumn - left.size() : kHelpColumn,
                     wrapped(fmt::format("{}{}", row.help, standard)));
}

}  // namespace

Result<CommandLine> parse_command_line(const std::vector<std::string>& args) {
  const Result<Words> words = Grammar().parse(args);
  if (!words) return tl::unexpected(words.error());
  CommandLine line;
  if (words->help || words->version) {
    line.action = words->help ? Action::help : Action::version;
    return line;
  }
  Options& options = line.options;
  if (const std::string file = named_config_file(words->settings); !file.empty()) {
    if (const auto read = apply_yaml_file(file, options); !read) return tl::unexpected(read.error());
  }
  for (const Setting& setting : words->settings) {
    if (const auto applied = apply(setting, options); !applied) return tl::unexpected(applied.error());
  }
  if (options.debug) {
    options.foreground = true;
    options.log_level = "debug";
  }
  if (words->paths.size() < 2)
    return fail(Errc::refused, "two paths are needed: SOURCE, the directory on the share, and MOUNTPOINT");
  options.source = words->paths[0];
  options.mountpoint = words->paths[1];
  if (options.source.empty() || options.mountpoint.empty())
    return fail(Errc::refused, "SOURCE and MOUNTPOINT cannot be empty");
  return line;
}

std::string help_text() {
  std::string text =
      "Usage: latchfs [-f] [-d] [-o OPTION[,OPTION...]] SOURCE MOUNTPOINT\n"
      "\n"
      "Mounts the directory SOURCE of a network share on MOUNTPOINT, so that fcntl, OFD and flock locks\n"
      "hold across all hosts that do the same.\n"
      "\n"
      "Each option can be written as a word of -o (beat=5s), as a long flag (--beat 5s) or as a line of the\n"
      "configuration file (beat: 5s). TIME is a number and a unit: 200ms, 5s, 1m, 2h.\n"
      "\n";
  for (const Row& row : rows()) text += help_line(row);
  text +=
      "  -h, --help                      print this text\n"
      "  -V, --version                   print the version\n"
      "\n"
      "Words that mount(8) knows (rw, nosuid, noatime, _netdev, nofail, x-systemd.automount, ...) may stand in -o "
      "too.\n"
      "Exit status: 0 mounted, 1 wrong usage, 2 system error, 32 the mount failed.\n";
  return text;
}

}  // namespace latchfs::config
