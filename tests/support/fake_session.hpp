#pragma once
#include <atomic>
#include <set>

#include "latchfs/engine/session.hpp"

namespace latchfs::testing {

/// A session whose state the test sets.
class FakeSession final : public engine::Session {
 public:
  explicit FakeSession(SessionId sid) : sid_(std::move(sid)) {}
  std::optional<SessionId> current() const override { return open ? std::optional(sid_) : std::nullopt; }
  bool lease_valid() const override { return lease; }
  Ticket next_ticket() override { return Ticket{next_.fetch_add(1)}; }
  bool is_void(const SessionId& sid) const override { return dead.contains(sid); }
  bool is_known(const SessionId& sid) const override { return known.contains(sid); }
  bool is_late(const SessionId&) const override { return false; }
  Result<void> learn() override {
    ++learnt;
    return {};
  }
  void disown() override { disowned = true; }

  std::atomic<bool> open{true};
  std::atomic<bool> lease{true};
  std::atomic<bool> disowned{false};
  std::atomic<int> learnt{0};
  std::set<SessionId> dead{};   ///< set before the engine starts
  std::set<SessionId> known{};  ///< likewise

 private:
  SessionId sid_;
  inline static std::atomic<std::uint64_t> next_{1};  // one clock for all sessions of a test
};

}  // namespace latchfs::testing
