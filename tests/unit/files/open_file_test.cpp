#include <doctest/doctest.h>

#include <cerrno>
#include <string>

#include "latchfs/files/fd_path.hpp"
#include "latchfs/files/id_table.hpp"
#include "latchfs/files/inode.hpp"
#include "latchfs/files/sync.hpp"
#include "unit/files/descriptors.hpp"

using namespace latchfs;
using namespace latchfs::files;
using namespace latchfs::files::test;

namespace {

std::shared_ptr<Inode> inode_of(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  const auto looked = look_at(fd.get());
  REQUIRE(looked.has_value());
  return std::make_shared<Inode>(NodeId{2}, std::move(fd), *looked);
}

std::shared_ptr<OpenFile> open_file(const std::shared_ptr<Inode>& inode, int flags) {
  auto fd = inode->reopen(flags);
  REQUIRE(fd.has_value());
  auto file = std::make_shared<OpenFile>(std::move(*fd), flags, inode);
  inode->add_open(file);
  return file;
}

}  // namespace

TEST_CASE("ids of a table count up, are never reused, and find what was put there") {
  IdTable<int> table;
  const auto one = table.next_id();
  const auto two = table.next_id();
  CHECK(one == 1);
  CHECK(two == 2);
  table.insert(one, std::make_shared<int>(11));
  table.insert(two, std::make_shared<int>(22));
  CHECK(*table.find(one) == 11);
  CHECK(*table.take(one) == 11);
  CHECK(table.find(one) == nullptr);
  CHECK(table.take(one) == nullptr);
  CHECK(table.next_id() == 3);
  CHECK(table.size() == 1);
  CHECK(table.take_all().size() == 1);
  CHECK(table.size() == 0);
}

TEST_CASE("an inode knows its open files while they are open") {
  const TempDir dir;
  write_file(dir / "a");
  const auto inode = inode_of(dir / "a");
  const auto before = open_descriptors();
  CHECK(inode->any_open() == nullptr);
  CHECK_FALSE(inode->may_be_mapped_for_write());
  auto reader = open_file(inode, O_RDONLY);
  CHECK(inode->any_open() == reader);
  CHECK_FALSE(inode->may_be_mapped_for_write());
  auto both = open_file(inode, O_RDWR);
  CHECK(inode->may_be_mapped_for_write());
  reader.reset();
  CHECK(inode->any_open() == both);
  both.reset();
  CHECK(inode->any_open() == nullptr);
  CHECK_FALSE(inode->may_be_mapped_for_write());
  CHECK(open_descriptors() == before);
}

TEST_CASE("the dirty mark is set by writes and taken by one flush") {
  const TempDir dir;
  write_file(dir / "a");
  const auto inode = inode_of(dir / "a");
  const auto before = open_descriptors();
  CHECK(*flush(*inode) == Synced::clean);
  inode->mark_dirty();
  CHECK(inode->is_dirty());
  CHECK(*flush(*inode) == Synced::done);
  CHECK_FALSE(inode->is_dirty());
  CHECK(*flush(*inode) == Synced::clean);
  inode->mark_dirty();
  CHECK(*refresh(*inode) == Synced::done);
  CHECK_FALSE(inode->is_dirty());
  CHECK(open_descriptors() == before);
}

TEST_CASE("flush and refresh work through whatever is open, and without anything open") {
  const TempDir dir;
  write_file(dir / "a");
  const auto inode = inode_of(dir / "a");
  for (const int flags : {O_RDONLY, O_WRONLY, O_RDWR}) {
    const auto file = open_file(inode, flags);
    inode->mark_dirty();
    CHECK(*flush(*inode) == Synced::done);
    CHECK(*refresh(*inode) == Synced::done);
  }
  inode->mark_dirty();
  CHECK(*flush(*inode) == Synced::done);
  CHECK(*refresh(*inode) == Synced::done);
}

TEST_CASE("a removed file makes neither flush nor refresh fail") {
  const TempDir dir;
  write_file(dir / "a");
  const auto inode = inode_of(dir / "a");
  std::filesystem::remove(dir / "a");
  inode->mark_dirty();
  CHECK(flush(*inode).has_value());
  CHECK(refresh(*inode).has_value());
}

TEST_CASE("a flush that fails leaves the file dirty and no descriptor behind") {
  const TempDir dir;
  // fsync of a symbolic link's inode cannot even begin: it opens with ELOOP.
  std::filesystem::create_symlink("nowhere", dir / "link");
  const auto inode = inode_of(dir / "link");
  const auto before = open_descriptors();
  inode->mark_dirty();
  const auto done = flush(*inode);
  REQUIRE_FALSE(done.has_value());
  CHECK(is_errno(done.error(), ELOOP));
  CHECK(inode->is_dirty());
  CHECK(is_errno(refresh(*inode).error(), ELOOP));
  CHECK(open_descriptors() == before);
}

TEST_CASE("one companion a file, for as long as somebody uses it") {
  const TempDir dir;
  write_file(dir / "a");
  const auto inode = inode_of(dir / "a");
  int made = 0;
  const auto make = [&made] { return std::make_shared<int>(++made); };
  auto first = inode->companion<int>(make);
  CHECK(inode->companion<int>(make) == first);
  CHECK(made == 1);
  first.reset();
  CHECK(*inode->companion<int>(make) == 2);
}

TEST_CASE("the path of a descriptor follows a rename") {
  const TempDir dir;
  write_file(dir / "a");
  const auto inode = inode_of(dir / "a");
  CHECK(path_of(inode->fd()) == (dir / "a").string());
  std::filesystem::rename(dir / "a", dir / "b");
  CHECK(path_of(inode->fd()) == (dir / "b").string());
  CHECK(path_of(-1) == "?");
}

TEST_CASE("the limit of descriptors is lifted to what the system allows") {
  CHECK(raise_descriptor_limit().has_value());
}
