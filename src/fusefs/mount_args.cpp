#include "fusefs/mount_args.hpp"

namespace latchfs::fusefs {
namespace {

/// libfuse takes words apart at commas, and a backslash protects the next character.
std::string escaped(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == ',' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

MountArgs::MountArgs(const MountSpec& spec) : words_{"latchfs"} {
  const auto add = [this](const std::string& option) {
    words_.emplace_back("-o");
    words_.push_back(option);
  };
  add("fsname=" + escaped(spec.source));
  add("subtype=latchfs");
  if (spec.read_only) add("ro");
  if (spec.debug) add("debug");
  for (const std::string& option : spec.fuse_options) add(option);
  for (std::string& word : words_) pointers_.push_back(word.data());
  args_ = fuse_args{static_cast<int>(pointers_.size()), pointers_.data(), 0};
}

}  // namespace latchfs::fusefs
