#pragma once
#include <string>
#include <vector>

#include "fusefs/fuse_api.hpp"
#include "latchfs/fusefs/mount.hpp"

namespace latchfs::fusefs {

/// The command line that libfuse wants for a mount.
class MountArgs {
 public:
  explicit MountArgs(const MountSpec& spec);
  ~MountArgs() { ::fuse_opt_free_args(&args_); }
  MountArgs(const MountArgs&) = delete;
  MountArgs& operator=(const MountArgs&) = delete;
  fuse_args* get() { return &args_; }
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
  fuse_args args_{};
};

}  // namespace latchfs::fusefs
