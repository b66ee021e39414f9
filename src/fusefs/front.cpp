#include "fusefs/front.hpp"

#include <string_view>

#include "latchfs/files/names.hpp"
#include "latchfs/protocol/layout.hpp"

namespace latchfs::fusefs {

static_assert(std::string_view(files::kHiddenName) == protocol::kControlDir);

Front::Front(const MountSpec& mount_spec, const Services& mount_services, std::unique_ptr<files::InodeTable> table)
    : spec(mount_spec),
      services(mount_services),
      inodes(std::move(table)),
      parked(std::make_shared<ParkedRequests>(canceller)) {}

HandlePtr Front::add_handle(UniqueFd fd, std::shared_ptr<files::Inode> file, fuse_file_info& fi) {
  const HandleId id{handles.next_id()};
  auto handle = std::make_shared<Handle>(id, std::move(fd), fi.flags, std::move(file));
  handle->inode->add_open(handle);
  handles.insert(id.value, handle);
  fi.fh = id.value;
  return handle;
}

fuse_entry_param Front::entry_of(const files::Found& found) const {
  fuse_entry_param e{};
  e.ino = found.inode->node.value;
  e.attr = found.attr;
  e.attr_timeout = spec.attr_timeout;
  e.entry_timeout = spec.entry_timeout;
  return e;
}

void Front::fail_lookup(Request req, const Error& error) const {
  if (!error.what.empty() && services.events != nullptr) services.events->write(Level::error, error.what);
  req.fail(error);
}

void Front::reply_entry(Request req, const Result<files::Found>& found) {
  if (!found) return fail_lookup(std::move(req), found.error());
  if (!req.entry(entry_of(*found))) inodes->forget(found->inode->node, 1);
}

void Front::hold(Request req, const HandlePtr& handle, Work work) {
  const auto key = parked->park(std::move(req));
  engine::Fence* const fence = services.fence;
  const WaiterId id =
      fence->hold(handle->fence, [parked = parked, key, handle, work = std::move(work)](const Result<void>& passed) {
        auto taken = parked->take(key);
        if (!taken) return;
        if (!passed) return taken->request.fail(passed.error());
        work(std::move(taken->request), *handle);
      });
  parked->aim(key, [fence, id] { fence->cancel(id); });
}

}  // namespace latchfs::fusefs
