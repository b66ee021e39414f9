#include "latchfs/files/open_dir.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include "unit/files/descriptors.hpp"

using namespace latchfs;
using namespace latchfs::files;
using namespace latchfs::files::test;

namespace {

std::shared_ptr<Inode> inode_of(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  const auto looked = look_at(fd.get());
  REQUIRE(looked.has_value());
  return std::make_shared<Inode>(NodeId{2}, std::move(fd), *looked);
}

struct Seen {
  std::vector<std::string> names;
  std::vector<off_t> offsets;
};

/// Reads on from `offset`, at most `count` entries.
Seen read_from(OpenDir& dir, off_t offset, std::size_t count = 1000) {
  const auto lock = dir.lock();
  Seen seen;
  REQUIRE(dir.go_to(offset).has_value());
  while (seen.names.size() < count) {
    const auto entry = dir.peek();
    REQUIRE(entry.has_value());
    if (*entry == nullptr) break;
    seen.names.emplace_back((*entry)->d_name);
    seen.offsets.push_back((*entry)->d_off);
    dir.advance();
  }
  return seen;
}

}  // namespace

TEST_CASE("a listing has every name but the hidden one") {
  const TempDir dir;
  std::filesystem::create_directory(dir / ".latchfs");
  for (const char* name : {"a", "b", ".hidden"}) write_file(dir / name);
  const auto open = OpenDir::open(inode_of(dir.path()));
  REQUIRE(open.has_value());
  const auto seen = read_from(**open, 0);
  CHECK(std::set<std::string>(seen.names.begin(), seen.names.end()) ==
        std::set<std::string>{".", "..", "a", "b", ".hidden"});
}

TEST_CASE("a listing goes on where any earlier answer ended") {
  const TempDir dir;
  for (int i = 0; i < 200; ++i) write_file(dir.path() / std::to_string(i));
  const auto open = OpenDir::open(inode_of(dir.path()));
  REQUIRE(open.has_value());
  const auto all = read_from(**open, 0);
  REQUIRE(all.names.size() == 202);
  for (const std::size_t at : {std::size_t{0}, std::size_t{77}, std::size_t{200}}) {
    const auto rest = read_from(**open, all.offsets[at]);
    CHECK(rest.names ==
          std::vector<std::string>(all.names.begin() + static_cast<std::ptrdiff_t>(at) + 1, all.names.end()));
  }
}

TEST_CASE("an entry that was looked at but not passed comes again") {
  const TempDir dir;
  for (const char* name : {"a", "b", "c"}) write_file(dir / name);
  const auto open = OpenDir::open(inode_of(dir.path()));
  REQUIRE(open.has_value());
  const auto first = read_from(**open, 0, 2);
  const auto rest = read_from(**open, first.offsets.back());
  CHECK(first.names.size() + rest.names.size() == 5);
  {
    const auto lock = (*open)->lock();
    REQUIRE((*open)->go_to(first.offsets.back()).has_value());
    const std::string looked = (*(*open)->peek())->d_name;
    CHECK(looked == (*(*open)->peek())->d_name);
    REQUIRE((*open)->go_to(first.offsets.back()).has_value());
    CHECK(looked == (*(*open)->peek())->d_name);
    CHECK(looked == rest.names.front());
  }
}

TEST_CASE("starting again shows what was made and removed meanwhile") {
  const TempDir dir;
  write_file(dir / "old");
  const auto open = OpenDir::open(inode_of(dir.path()));
  REQUIRE(open.has_value());
  const auto before = open_descriptors();
  read_from(**open, 0);
  write_file(dir / "new");
  std::filesystem::remove(dir / "old");
  const auto again = read_from(**open, 0);
  CHECK(std::count(again.names.begin(), again.names.end(), "new") == 1);
  CHECK(std::count(again.names.begin(), again.names.end(), "old") == 0);
  CHECK(open_descriptors() == before);
}

TEST_CASE("opening what is no directory fails and keeps no descriptor") {
  const TempDir dir;
  write_file(dir / "a");
  const auto inode = inode_of(dir / "a");
  const auto before = open_descriptors();
  const auto open = OpenDir::open(inode);
  REQUIRE_FALSE(open.has_value());
  CHECK(is_errno(open.error(), ENOTDIR));
  CHECK(open_descriptors() == before);
}
