#include "yaml_file.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

#include "table.hpp"

namespace latchfs::config {
namespace {

constexpr std::size_t kLongestFile = 64 * 1024;

tl::unexpected<Error> fail_at(const std::string& name, const YAML::Mark& mark, std::string_view what) {
  return fail(Errc::refused, fmt::format("{}:{}: {}", name, mark.is_null() ? 1 : mark.line + 1, what));
}

Result<void> apply_entry(const std::string& name, const YAML::Node& key, const YAML::Node& value, Options& options) {
  if (!key.IsScalar()) return fail_at(name, key.Mark(), "an option is written 'word: value'");
  const std::string& word = key.Scalar();
  const Row* row = find_row(word);
  const MountWord* refused = find_mount_word(word);
  if (row == nullptr && (refused == nullptr || refused->fate != Fate::refuse))
    return fail_at(name, key.Mark(), unknown_option(word));
  if (row != nullptr && row->word == "config")
    return fail_at(name, key.Mark(), "a configuration file cannot name another one");
  if (value.IsSequence() || value.IsMap())
    return fail_at(name, value.Mark(), fmt::format("option '{}' takes one plain value", word));
  const auto applied = apply(Setting{word, value.IsNull() ? std::string() : value.Scalar()}, options);
  if (!applied) return fail_at(name, key.Mark(), applied.error().what);
  return {};
}

// Notes where a document starts and nothing else.
class DocumentMark final : public YAML::EventHandler {
 public:
  YAML::Mark mark = YAML::Mark::null_mark();

  void OnDocumentStart(const YAML::Mark& at) override { mark = at; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// The mark of a second document, if there is one. YAML::LoadAll() cannot tell: yaml-cpp finds documents without end in
// a text as short as ",:".
std::optional<YAML::Mark> second_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentMark handler;
  if (!parser.HandleNextDocument(handler) || !parser.HandleNextDocument(handler)) return std::nullopt;
  return handler.mark;
}

Result<void> apply_document(const std::string& text, const std::string& name, Options& options) {
  if (const auto second = second_document(text)) {
    return fail_at(name, *second, "one list of 'word: value' lines is expected, and this is something else");
  }
  const YAML::Node document = YAML::Load(text);
  if (document.IsNull()) return {};
  if (!document.IsMap()) return fail_at(name, document.Mark(), "the file must be a list of 'word: value' lines");
  std::set<std::string> seen;
  for (const auto& entry : document) {
    if (auto applied = apply_entry(name, entry.first, entry.second, options); !applied) return applied;
    if (!seen.insert(entry.first.Scalar()).second) {
      return fail_at(name, entry.first.Mark(), fmt::format("option '{}' is given twice", entry.first.Scalar()));
    }
  }
  return {};
}

}  // namespace

Result<void> apply_yaml(const std::string& text, const std::string& name, Options& options) {
  try {
    return apply_document(text, name, options);
  } catch (const YAML::Exception& e) {
    return fail_at(name, e.mark, e.msg);
  }
}

Result<void> apply_yaml_file(const std::string& path, Options& options) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  if (!file) return fail_errno(errno, path);
  std::string text(kLongestFile + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return fail_errno(errno, path);
  if (text.size() > kLongestFile)
    return fail(Errc::refused, fmt::format("{}: a configuration file has at most {} bytes", path, kLongestFile));
  return apply_yaml(text, path, options);
}

}  // namespace latchfs::config
