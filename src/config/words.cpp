#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "latchfs/base/duration.hpp"
#include "table.hpp"

namespace latchfs::config {
namespace {

constexpr std::size_t kLongestName = 64;

bool is_octal(char c, char highest) { return c >= '0' && c <= highest; }

// Reads what follows a backslash at `at` and moves `at` to its last character.
char unescape(std::string_view text, std::size_t& at) {
  const std::string_view rest = text.substr(at + 1);
  if (rest.size() >= 3 && is_octal(rest[0], '3') && is_octal(rest[1], '7') && is_octal(rest[2], '7')) {
    at += 3;
    return static_cast<char>((rest[0] - '0') * 64 + (rest[1] - '0') * 8 + (rest[2] - '0'));
  }
  at += 1;
  return rest[0];
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

bool is_choice(std::string_view choices, std::string_view text) {
  while (true) {
    const std::size_t bar = choices.find('|');
    if (choices.substr(0, bar) == text) return true;
    if (bar == std::string_view::npos) return false;
    choices.remove_prefix(bar + 1);
  }
}

bool is_name(std::string_view text) {
  if (text.size() > kLongestName) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  });
}

Result<Value> read_value(const Row& row, const std::string& text) {
  Value value;
  value.text = text;
  switch (row.kind) {
    case Kind::flag:
      if (text != "true" && text != "false")
        return fail(Errc::refused, fmt::format("option '{}' is on or off: true or false, not '{}'", row.word, text));
      value.flag = text == "true";
      return value;
    case Kind::duration: {
      const Result<Nanos> duration = parse_duration(text);
      if (!duration) return fail(Errc::refused, fmt::format("option '{}': {}", row.word, duration.error().what));
      value.duration = *duration;
      return value;
    }
    case Kind::choice:
      if (!is_choice(row.value, text))
        return fail(Errc::refused, fmt::format("option '{}' is one of {}, not '{}'", row.word, row.value, text));
      return value;
    case Kind::name:
      if (!is_name(text)) {
        return fail(Errc::refused,
                    fmt::format("option '{}' is a name of at most {} letters, digits, '.', '_' or '-', not '{}'",
                                row.word, kLongestName, text));
      }
      return value;
    case Kind::text: return value;
  }
  return value;
}

}  // namespace

std::vector<Setting> split_words(std::string_view text) {
  std::vector<Setting> words;
  Setting word;
  const auto finish = [&] {
    if (!word.key.empty() || word.value) words.push_back(std::move(word));
    word = Setting{};
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    std::string& part = word.value ? *word.value : word.key;
    if (c == ',') {
      finish();
    } else if (c == '=' && !word.value) {
      word.value.emplace();
    } else if (c == '\\' && at + 1 < text.size()) {
      part.push_back(unescape(text, at));
    } else {
      part.push_back(c);
    }
  }
  finish();
  return words;
}

std::string unknown_option(std::string_view word) {
  std::string_view nearest;
  std::size_t best = std::max<std::size_t>(2, word.size() / 3) + 1;  // farther than this is no misspelling
  for (const Row& row : rows()) {
    const std::size_t distance = edit_distance(word.substr(0, kLongestName), row.word);
    if (distance >= best || distance >= word.size()) continue;
    best = distance;
    nearest = row.word;
  }
  if (nearest.empty()) return fmt::format("unknown option '{}'", word);
  return fmt::format("unknown option '{}': did you mean '{}'?", word, nearest);
}

Result<void> apply(const Setting& setting, Options& options) {
  if (const Row* row = find_row(setting.key)) {
    const bool flag = row->kind == Kind::flag;
    if (!flag && setting.value.value_or("").empty())
      return fail(Errc::refused, fmt::format("option '{}' needs a value: {}={}", row->word, row->word, row->value));
    const Result<Value> value = read_value(*row, setting.value.value_or("true"));
    if (!value) return tl::unexpected(value.error());
    row->set(options, *value);
    return {};
  }
  const MountWord* word = find_mount_word(setting.key);
  if (word == nullptr) return fail(Errc::refused, unknown_option(setting.key));
  if (word->fate == Fate::refuse)
    return fail(Errc::refused, fmt::format("option '{}' is refused: {}", setting.key, word->reason));
  if (word->fate == Fate::drop) return {};
  if (setting.value) return fail(Errc::refused, fmt::format("option '{}' takes no value", setting.key));
  if (setting.key == "rw") options.read_only = false;
  options.fuse_options.push_back(setting.key);
  return {};
}

}  // namespace latchfs::config
