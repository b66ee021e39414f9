#pragma once
#include <fmt/format.h>

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "latchfs/share/share.hpp"

/// A share in memory, moved by the hand of a test. One FakeDisk is the server; each FakeShare is what one host sees of
/// it.
namespace latchfs::testing {

class FakeDisk {
 public:
  struct Node {
    bool folder = false;
    std::uint64_t inode = 0;
    WallTime changed{};
    std::string content{};
  };

  /// How far the server's clock is ahead of this machine's.
  void set_clock_skew(Nanos skew) {
    const std::lock_guard lock(mutex_);
    skew_ = skew;
  }

  /// The folders of a control directory and, where given, a file `format`.
  void lay_out(const std::string& format = {}) {
    for (const char* folder : {"sessions", "beats", "inbox", "locks"}) make(folder, true, "");
    if (!format.empty()) make("format", false, format);
  }

  /// 0 or an errno, like every function below.
  int make(const std::string& path, bool folder, std::string content) {
    const std::lock_guard lock(mutex_);
    if (const int err = check_parent(path); err != 0) return err;
    if (nodes_.count(path) != 0) return EEXIST;
    nodes_[path] = Node{folder, ++last_inode_, now(), std::move(content)};
    return 0;
  }
  int remove(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (nodes_.count(path) == 0) return ENOENT;
    if (!children(path).empty()) return ENOTEMPTY;
    nodes_.erase(path);
    return 0;
  }
  int rename(const std::string& from, const std::string& to) {
    const std::lock_guard lock(mutex_);
    const auto it = nodes_.find(from);
    if (it == nodes_.end()) return ENOENT;
    Node node = it->second;
    if (node.folder) return EISDIR;  // no folder of a control directory is ever renamed
    node.changed = now();
    nodes_.erase(it);
    nodes_[to] = std::move(node);
    return 0;
  }
  int read(const std::string& path, std::size_t limit, std::string& out) const {
    const std::lock_guard lock(mutex_);
    const auto it = nodes_.find(path);
    if (it == nodes_.end()) return ENOENT;
    if (it->second.folder) return EINVAL;
    out = it->second.content.substr(0, limit);
    return 0;
  }
  int write(const std::string& path, std::string content) {
    const std::lock_guard lock(mutex_);
    const auto it = nodes_.find(path);
    if (it == nodes_.end()) return ENOENT;
    it->second.content = std::move(content);
    return 0;
  }
  int facts(const std::string& path, Node& out) const {
    const std::lock_guard lock(mutex_);
    const auto it = nodes_.find(path);
    if (it == nodes_.end() && !path.empty()) return ENOENT;
    out = path.empty() ? Node{true, 1, WallTime{}, ""} : it->second;
    return 0;
  }
  int list(const std::string& dir, std::vector<std::string>& out) const {
    const std::lock_guard lock(mutex_);
    const auto it = nodes_.find(dir);
    if (it == nodes_.end()) return ENOENT;
    if (!it->second.folder) return ENOTDIR;
    out = children(dir);
    return 0;
  }
  bool exists(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    return nodes_.count(path) != 0;
  }
  /// Every path on the share, sorted.
  std::vector<std::string> paths() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> out;
    for (const auto& [path, node] : nodes_) out.push_back(path);
    return out;
  }

 private:
  WallTime now() const {
    return std::chrono::system_clock::now() + std::chrono::duration_cast<WallTime::duration>(skew_);
  }
  int check_parent(const std::string& path) const {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return 0;
    const auto it = nodes_.find(path.substr(0, slash));
    if (it == nodes_.end()) return ENOENT;
    return it->second.folder ? 0 : ENOTDIR;
  }
  std::vector<std::string> children(const std::string& dir) const {
    const std::string prefix = dir + "/";
    std::vector<std::string> out;
    for (auto it = nodes_.lower_bound(prefix); it != nodes_.end() && it->first.compare(0, prefix.size(), prefix) == 0;
         ++it) {
      const std::string rest = it->first.substr(prefix.size());
      if (rest.find('/') == std::string::npos) out.push_back(rest);
    }
    return out;
  }

  mutable std::mutex mutex_;
  std::map<std::string, Node> nodes_;
  std::uint64_t last_inode_ = 100;
  Nanos skew_{0};
};

/// One host's door to the disk. A test can make calls fail, lose the reply of calls that were done, and hang.
class FakeShare final : public share::Share {
 public:
  struct Call {
    std::string_view op;  ///< name of the Share function
    std::string_view dir;
    std::string_view name;
  };
  struct Fault {
    int fail = 0;        ///< not done, this errno is returned
    int lose_reply = 0;  ///< done, this errno is returned all the same
  };
  /// Called before each call, outside every lock; may use the disk.
  using Hook = std::function<Fault(const Call&)>;

  explicit FakeShare(FakeDisk& disk, share::EntryForm form = share::EntryForm::directory) : disk_(disk), form_(form) {}

  void set_hook(Hook hook) {
    const std::lock_guard lock(mutex_);
    hook_ = std::move(hook);
  }
  /// From now on every call hangs (before it does anything) until thaw(), like on a hard mount that was cut off.
  void freeze() {
    const std::lock_guard lock(mutex_);
    frozen_ = true;
  }
  void thaw() {
    const std::lock_guard lock(mutex_);
    frozen_ = false;
    changed_.notify_all();
  }
  /// How many calls hang now.
  int hanging() const {
    const std::lock_guard lock(mutex_);
    return hanging_;
  }
  /// How many calls of `op` were begun.
  int count(const std::string& op) const {
    const std::lock_guard lock(mutex_);
    const auto it = counts_.find(op);
    return it == counts_.end() ? 0 : it->second;
  }

  Result<void> make_entry(const std::string& dir, const std::string& name) override {
    return run("make_entry", dir, name,
               [&] { return disk_.make(join(dir, name), form_ == share::EntryForm::directory, ""); });
  }
  Result<void> remove_entry(const std::string& dir, const std::string& name) override {
    return run("remove_entry", dir, name, [&] { return disk_.remove(join(dir, name)); });
  }
  Result<void> make_folder(const std::string& dir) override {
    return run("make_folder", dir, "", [&] {
      const int err = disk_.make(dir, true, "");
      return err == EEXIST ? 0 : err;
    });
  }
  Result<void> publish_file(const std::string& dir, const std::string& name, const std::string& content) override {
    return run("publish_file", dir, name, [&] { return disk_.make(join(dir, name), false, content); });
  }
  Result<void> make_file(const std::string& dir, const std::string& name) override {
    return run("make_file", dir, name, [&] { return disk_.make(join(dir, name), false, ""); });
  }
  Result<std::string> read_file(const std::string& dir, const std::string& name, std::size_t limit) override {
    std::string out;
    const auto done = run("read_file", dir, name, [&] { return disk_.read(join(dir, name), limit, out); });
    if (!done) return tl::unexpected(done.error());
    return out;
  }
  Result<void> rename(const std::string& dir, const std::string& from, const std::string& to) override {
    return run("rename", dir, from, [&] { return disk_.rename(join(dir, from), join(dir, to)); });
  }
  Result<std::vector<std::string>> list(const std::string& dir, share::Freshness) override {
    std::vector<std::string> out;
    const auto done = run("list", dir, "", [&] { return disk_.list(dir, out); });
    if (!done) return tl::unexpected(done.error());
    return out;
  }
  Result<share::FileFacts> facts(const std::string& dir, const std::string& name) override {
    FakeDisk::Node node;
    const auto done = run("facts", dir, name, [&] { return disk_.facts(join(dir, name), node); });
    if (!done) return tl::unexpected(done.error());
    constexpr std::uint32_t kFolder = 0040700;
    constexpr std::uint32_t kFile = 0100600;
    return share::FileFacts{node.inode, 1000, node.folder ? kFolder : kFile, node.changed};
  }
  Result<void> sync_all() override {
    return run("sync_all", "", "", [] { return 0; });
  }

 private:
  static std::string join(const std::string& dir, const std::string& name) {
    if (dir.empty()) return name;
    return name.empty() ? dir : dir + "/" + name;
  }

  template <class Work>
  Result<void> run(const char* op, const std::string& dir, const std::string& name, Work work) {
    Hook hook;
    {
      std::unique_lock lock(mutex_);
      ++counts_[op];
      ++hanging_;
      changed_.wait(lock, [&] { return !frozen_; });
      --hanging_;
      hook = hook_;
    }
    const Fault fault = hook ? hook(Call{op, dir, name}) : Fault{};
    const auto what = [&] { return fmt::format("{} {}", op, join(dir, name)); };
    if (fault.fail != 0) return fail_errno(fault.fail, what());
    const int err = work();
    if (fault.lose_reply != 0) return fail_errno(fault.lose_reply, what());
    if (err != 0) return fail_errno(err, what());
    return {};
  }

  FakeDisk& disk_;
  const share::EntryForm form_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Hook hook_;
  std::map<std::string, int> counts_;
  bool frozen_ = false;
  int hanging_ = 0;
};

}  // namespace latchfs::testing
