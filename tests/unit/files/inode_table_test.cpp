#include "latchfs/files/inode_table.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "unit/files/descriptors.hpp"

using namespace latchfs;
using namespace latchfs::files;
using namespace latchfs::files::test;

namespace {

std::unique_ptr<InodeTable> table_over(const std::filesystem::path& path) {
  auto table = InodeTable::over(UniqueFd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)));
  REQUIRE(table.has_value());
  return std::move(*table);
}

/// Lets no further descriptor be opened while it lives.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &old_);
    rlimit none = old_;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &old_); }

 private:
  rlimit old_{};
};

}  // namespace

TEST_CASE("the root is node 1 and is never forgotten") {
  const TempDir dir;
  const auto table = table_over(dir.path());
  CHECK(table->root()->node == kRootNode);
  CHECK(table->find(kRootNode) == table->root());
  table->forget(kRootNode, 5);
  CHECK(table->find(kRootNode) == table->root());
}

TEST_CASE("a file has one inode, whatever the name it is found by, and keeps it over a rename") {
  const TempDir dir;
  write_file(dir / "a");
  std::filesystem::create_hard_link(dir / "a", dir / "b");
  const auto table = table_over(dir.path());
  const auto a = table->lookup(*table->root(), "a");
  const auto b = table->lookup(*table->root(), "b");
  REQUIRE(a.has_value());
  REQUIRE(b.has_value());
  CHECK(a->inode == b->inode);
  CHECK(a->inode->node != kRootNode);
  CHECK(a->attr.st_nlink == 2);
  std::filesystem::rename(dir / "a", dir / "c");
  const auto c = table->lookup(*table->root(), "c");
  REQUIRE(c.has_value());
  CHECK(c->inode == a->inode);
}

TEST_CASE("an inode goes with its last lookup, and its node id never comes back") {
  const TempDir dir;
  write_file(dir / "a");
  const auto table = table_over(dir.path());
  const auto before = open_descriptors();
  NodeId first;
  {
    const auto once = table->lookup(*table->root(), "a");
    const auto twice = table->lookup(*table->root(), "a");
    REQUIRE(once.has_value());
    REQUIRE(twice.has_value());
    first = once->inode->node;
  }
  CHECK(open_descriptors() == before + 1);
  table->forget(first, 1);
  CHECK(table->find(first) != nullptr);
  table->forget(first, 1);
  CHECK(table->find(first) == nullptr);
  CHECK(open_descriptors() == before);
  CHECK(table->size() == 1);
  const auto again = table->lookup(*table->root(), "a");
  REQUIRE(again.has_value());
  CHECK(again->inode->node > first);
}

TEST_CASE("forgetting more than was counted, or something unknown, does no harm") {
  const TempDir dir;
  write_file(dir / "a");
  const auto table = table_over(dir.path());
  const auto found = table->lookup(*table->root(), "a");
  REQUIRE(found.has_value());
  table->forget(NodeId{4711}, 1);
  table->forget(found->inode->node, 99);
  CHECK(table->find(found->inode->node) == nullptr);
  CHECK(table->size() == 1);
}

TEST_CASE("symbolic links are found themselves and not followed") {
  const TempDir dir;
  std::filesystem::create_symlink("/etc", dir / "link");
  const auto table = table_over(dir.path());
  const auto link = table->lookup(*table->root(), "link");
  REQUIRE(link.has_value());
  CHECK(S_ISLNK(link->attr.st_mode));
}

TEST_CASE("a created file is adopted by its descriptor and not by its name") {
  const TempDir dir;
  const auto table = table_over(dir.path());
  const UniqueFd fd(::open((dir / "new").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  std::filesystem::rename(dir / "new", dir / "moved");
  const auto adopted = table->adopt(fd.get());
  REQUIRE(adopted.has_value());
  const auto looked = table->lookup(*table->root(), "moved");
  REQUIRE(looked.has_value());
  CHECK(looked->inode == adopted->inode);
}

TEST_CASE("the control directory cannot be found at any level, in any spelling") {
  const TempDir dir;
  std::filesystem::create_directories(dir.path() / "sub" / ".latchfs");
  std::filesystem::create_directory(dir / ".latchfs");
  std::filesystem::create_directory(dir / ".LATCHFS");
  write_file(dir / ".latchfsx");
  const auto table = table_over(dir.path());
  const auto sub = table->lookup(*table->root(), "sub");
  REQUIRE(sub.has_value());
  for (const char* name : {".latchfs", ".LATCHFS", ".LatchFS"}) {
    const auto at_root = table->lookup(*table->root(), name);
    const auto below = table->lookup(*sub->inode, name);
    REQUIRE_FALSE(at_root.has_value());
    REQUIRE_FALSE(below.has_value());
    CHECK(is_errno(at_root.error(), ENOENT));
    CHECK(is_errno(below.error(), ENOENT));
  }
  CHECK(table->lookup(*table->root(), ".latchfsx").has_value());
}

TEST_CASE("the root of another share below this one is refused, with one sentence for the log") {
  const TempDir dir;
  std::filesystem::create_directories(dir.path() / "nested" / ".latchfs");
  write_file(dir.path() / "nested" / ".latchfs" / "format");
  std::filesystem::create_directories(dir.path() / "harmless" / ".latchfs");
  const auto table = table_over(dir.path());
  const auto before = open_descriptors();
  const auto first = table->lookup(*table->root(), "nested");
  const auto second = table->lookup(*table->root(), "nested");
  REQUIRE_FALSE(first.has_value());
  REQUIRE_FALSE(second.has_value());
  CHECK(is_errno(first.error(), EBUSY));
  CHECK(is_errno(second.error(), EBUSY));
  CHECK(first.error().what.find("nested") != std::string::npos);
  CHECK(second.error().what.empty());
  CHECK(open_descriptors() == before);
  CHECK(table->lookup(*table->root(), "harmless").has_value());
}

TEST_CASE("no error path keeps a descriptor") {
  const TempDir dir;
  write_file(dir / "a");
  const auto table = table_over(dir.path());
  const auto known = table->lookup(*table->root(), "a");
  REQUIRE(known.has_value());
  const auto before = open_descriptors();
  CHECK(is_errno(table->lookup(*table->root(), "missing").error(), ENOENT));
  CHECK(is_errno(table->lookup(*known->inode, "below a file").error(), ENOTDIR));
  CHECK(is_errno(table->lookup(*table->root(), std::string(300, 'n').c_str()).error(), ENAMETOOLONG));
  CHECK(is_errno(table->adopt(-1).error(), ENOENT));
  CHECK_FALSE(InodeTable::over(UniqueFd()).has_value());
  {
    const NoMoreDescriptors limit;
    CHECK(is_errno(table->lookup(*table->root(), "a").error(), EMFILE));
    CHECK(is_errno(known->inode->reopen(O_RDONLY).error(), EMFILE));
  }
  CHECK(is_errno(known->inode->reopen(O_RDONLY | O_DIRECTORY).error(), ENOTDIR));
  CHECK(open_descriptors() == before);
}

TEST_CASE("a number that the share gives to a new file is told apart from the old one") {
  const TempDir dir;
  write_file(dir / "a");
  write_file(dir / "b");
  const UniqueFd a(::open((dir / "a").c_str(), O_PATH | O_CLOEXEC));
  const UniqueFd b(::open((dir / "b").c_str(), O_PATH | O_CLOEXEC));
  auto seen = look_at(a.get());
  REQUIRE(seen.has_value());

  SUBCASE("by its birth time") {
    const Inode kept(NodeId{2}, UniqueFd(::dup(a.get())), *seen);
    CHECK(kept.is_same(a.get(), *seen));
    Looked later = *seen;
    later.birth = Birth{later.birth.value_or(Birth{}).sec + 1, 0};
    if (seen->birth) CHECK_FALSE(kept.is_same(a.get(), later));
  }
  SUBCASE("by its file handle where there is no birth time") {
    seen->birth.reset();
    const Inode kept(NodeId{2}, UniqueFd(::dup(a.get())), *seen);
    CHECK(kept.is_same(a.get(), *seen));
    CHECK_FALSE(kept.is_same(b.get(), *seen));
  }
}

TEST_CASE("threads that look up and forget the same files agree on the counts") {
  const TempDir dir;
  for (const char* name : {"a", "b", "c"}) write_file(dir / name);
  const auto table = table_over(dir.path());
  const auto before = open_descriptors();
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&table, &failures, t] {
      for (int i = 0; i < 2000; ++i) {
        const char* const name = &"a\0b\0c\0"[2 * ((i + t) % 3)];
        const auto found = table->lookup(*table->root(), name);
        if (!found || table->find(found->inode->node) != found->inode) ++failures;
        if (found) table->forget(found->inode->node, 1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(failures == 0);
  CHECK(table->size() == 1);
  CHECK(open_descriptors() == before);
}
