#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace latchfs::files {

/// Objects under numbers that count up and are never reused, so a late message about a closed file can never hit a
/// newer one. Any thread.
template <class T>
class IdTable {
 public:
  /// A number for insert(). Starts at 1.
  std::uint64_t next_id() { return next_.fetch_add(1, std::memory_order_relaxed); }

  void insert(std::uint64_t id, std::shared_ptr<T> object) {
    Shard& shard = shard_of(id);
    const std::lock_guard lock(shard.mutex);
    shard.objects.emplace(id, std::move(object));
  }
  /// Null for a number that is not in the table.
  std::shared_ptr<T> find(std::uint64_t id) const {
    const Shard& shard = shard_of(id);
    const std::lock_guard lock(shard.mutex);
    const auto it = shard.objects.find(id);
    return it == shard.objects.end() ? nullptr : it->second;
  }
  /// Takes the object out.
  std::shared_ptr<T> take(std::uint64_t id) {
    Shard& shard = shard_of(id);
    const std::lock_guard lock(shard.mutex);
    const auto node = shard.objects.extract(id);
    return node.empty() ? nullptr : std::move(node.mapped());
  }
  /// Takes all objects out.
  std::vector<std::shared_ptr<T>> take_all() {
    std::vector<std::shared_ptr<T>> all;
    for (Shard& shard : shards_) {
      const std::lock_guard lock(shard.mutex);
      for (auto& [id, object] : shard.objects) all.push_back(std::move(object));
      shard.objects.clear();
    }
    return all;
  }
  std::size_t size() const {
    std::size_t sum = 0;
    for (const Shard& shard : shards_) {
      const std::lock_guard lock(shard.mutex);
      sum += shard.objects.size();
    }
    return sum;
  }

 private:
  // Every read and write of every program finds its handle here: several locks, each on a cache line of its own.
  struct alignas(64) Shard {
    mutable std::mutex mutex;
    std::unordered_map<std::uint64_t, std::shared_ptr<T>> objects;
  };
  static constexpr std::size_t kShards = 16;
  Shard& shard_of(std::uint64_t id) { return shards_[id % kShards]; }
  const Shard& shard_of(std::uint64_t id) const { return shards_[id % kShards]; }

  std::array<Shard, kShards> shards_;
  std::atomic<std::uint64_t> next_{1};
};

}  // namespace latchfs::files
