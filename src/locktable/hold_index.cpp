#include "locktable/hold_index.hpp"

#include <algorithm>
#include <utility>

namespace latchfs::locktable {
namespace {

constexpr std::int64_t kNowhere = -1;

/// How far the holds of a subtree reach, and how far those reach that do not belong to the owner of the furthest one.
/// The two numbers answer "how far do the holds of everyone but X reach" for every X.
struct Reach {
  std::int64_t furthest = kNowhere;
  LockOwner owner{};
  std::int64_t others = kNowhere;

  std::int64_t without(const std::optional<LockOwner>& except) const {
    return except && *except == owner ? others : furthest;
  }
};

Reach combine(const Reach& a, const Reach& b) {
  const Reach& far = a.furthest >= b.furthest ? a : b;
  const Reach& near = a.furthest >= b.furthest ? b : a;
  // What the near side has beyond its own furthest hold counts only where that one has the same owner as the far
  // side's: else it is shorter.
  return {far.furthest, far.owner, std::max(far.others, near.without(far.owner))};
}

bool before(const Hold& a, const Hold& b) {
  return std::pair(a.range.first, a.owner) < std::pair(b.range.first, b.owner);
}

/// SplitMix64: priorities that are spread evenly and are the same in every run.
std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

}  // namespace

struct HoldIndex::Node {
  const Hold* hold;
  std::uint64_t priority;
  Tree low{};
  Tree high{};
  Reach reads{};
  Reach writes{};

  void update() {
    const Reach own{static_cast<std::int64_t>(hold->range.last), hold->owner, kNowhere};
    reads = hold->mode == Mode::read ? own : Reach{};
    writes = hold->mode == Mode::write ? own : Reach{};
    for (const Node* child : {low.get(), high.get()}) {
      if (child == nullptr) continue;
      reads = combine(reads, child->reads);
      writes = combine(writes, child->writes);
    }
  }

  /// Some hold below that fits mode and owner ends in the range or after it.
  bool reaches(const Query& query) const {
    const std::int64_t r = query.mode != Mode::write ? reads.without(query.except) : kNowhere;
    const std::int64_t w = query.mode != Mode::read ? writes.without(query.except) : kNowhere;
    return std::max(r, w) >= static_cast<std::int64_t>(query.range.first);
  }

  bool itself_reaches(const Query& query) const {
    return (!query.mode || *query.mode == hold->mode) && (!query.except || *query.except != hold->owner) &&
           hold->range.last >= query.range.first;
  }
};

HoldIndex::HoldIndex() = default;
HoldIndex::~HoldIndex() = default;

/// One tree of two, of which the first lies wholly before the second.
HoldIndex::Tree HoldIndex::join(Tree low, Tree high) {
  if (!low) return high;
  if (!high) return low;
  Tree& top = low->priority >= high->priority ? low : high;
  if (&top == &low) {
    low->high = join(std::move(low->high), std::move(high));
  } else {
    high->low = join(std::move(low), std::move(high->low));
  }
  top->update();
  return std::move(top);
}

/// What comes before `key`, and the rest.
std::pair<HoldIndex::Tree, HoldIndex::Tree> HoldIndex::split(Tree tree, const Hold& key) {
  if (!tree) return {};
  if (before(*tree->hold, key)) {
    auto [low, high] = split(std::move(tree->high), key);
    tree->high = std::move(low);
    tree->update();
    return {std::move(tree), std::move(high)};
  }
  auto [low, high] = split(std::move(tree->low), key);
  tree->low = std::move(high);
  tree->update();
  return {std::move(low), std::move(tree)};
}

HoldIndex::Tree HoldIndex::without(Tree tree, const Hold& hold) {
  if (!tree) return tree;
  if (tree->hold == &hold) return join(std::move(tree->low), std::move(tree->high));
  Tree& side = before(hold, *tree->hold) ? tree->low : tree->high;
  side = without(std::move(side), hold);
  tree->update();
  return tree;
}

void HoldIndex::insert(const Hold* hold) {
  auto node = std::make_unique<Node>(Node{hold, next_random(random_state_)});
  node->update();
  auto [low, high] = split(std::move(root_), *hold);
  root_ = join(join(std::move(low), std::move(node)), std::move(high));
  ++size_;
}

void HoldIndex::erase(const Hold* hold) {
  root_ = without(std::move(root_), *hold);
  --size_;
}

const Hold* HoldIndex::lowest(const Query& query) const {
  const Node* node = root_.get();
  while (node != nullptr && node->reaches(query)) {
    if (node->low && node->low->reaches(query)) {
      node = node->low.get();
    } else if (node->itself_reaches(query)) {
      // The lowest hold that does not end before the range. Where it begins behind the range, so do all that follow.
      return node->hold->range.first <= query.range.last ? node->hold : nullptr;
    } else {
      node = node->high.get();
    }
  }
  return nullptr;
}

std::vector<const Hold*> HoldIndex::all() const {
  std::vector<const Hold*> found;
  found.reserve(size_);
  std::vector<const Node*> way;
  const Node* node = root_.get();
  while (node != nullptr || !way.empty()) {
    for (; node != nullptr; node = node->low.get()) way.push_back(node);
    node = way.back();
    way.pop_back();
    found.push_back(node->hold);
    node = node->high.get();
  }
  return found;
}

}  // namespace latchfs::locktable
