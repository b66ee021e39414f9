#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "latchfs/base/unique_fd.hpp"
#include "latchfs/share/share.hpp"

namespace latchfs::share {

/// What entries cost least as on the file system of this open directory: files on SMB, directories elsewhere.
EntryForm best_entry_form(int directory);

/// The control directory below an open descriptor of it. Only *at calls on descriptors, nothing follows a symbolic
/// link. All functions: any thread.
class PosixShare final : public Share {
 public:
  /// `control_dir`: readable descriptor of `.latchfs`.
  PosixShare(UniqueFd control_dir, EntryForm form) : root_(std::move(control_dir)), form_(form) {}

  Result<void> make_entry(const std::string& dir, const std::string& name) override;
  Result<void> remove_entry(const std::string& dir, const std::string& name) override;
  Result<void> make_folder(const std::string& dir) override;
  Result<void> publish_file(const std::string& dir, const std::string& name, const std::string& content) override;
  Result<void> make_file(const std::string& dir, const std::string& name) override;
  Result<std::string> read_file(const std::string& dir, const std::string& name, std::size_t limit) override;
  Result<void> rename(const std::string& dir, const std::string& from, const std::string& to) override;
  Result<std::vector<std::string>> list(const std::string& dir, Freshness freshness) override;
  Result<FileFacts> facts(const std::string& dir, const std::string& name) override;
  Result<void> sync_all() override;

  /// publish_file() for content that speaks of the file's own inode number.
  using Content = std::function<std::string(std::uint64_t inode)>;
  Result<void> publish_numbered(const std::string& dir, const std::string& name, const Content& content);

 private:
  Result<UniqueFd> open_folder(const std::string& dir) const;
  Result<std::vector<std::string>> list_once(const std::string& dir, Freshness freshness) const;

  const UniqueFd root_;
  const EntryForm form_;
};

}  // namespace latchfs::share
