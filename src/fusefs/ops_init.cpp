#include "fusefs/ops.hpp"
#include "fusefs/ops_table.hpp"

namespace latchfs::fusefs {
namespace ops {

void init(void* /*userdata*/, fuse_conn_info* conn) {
  conn->want |= conn->capable & FUSE_CAP_SPLICE_WRITE;
  // The kernel must keep taking away set-uid bits on a write: this process may be privileged, and then the share's own
  // file system does not. A cached target of a symbolic link would hide another host's change of it. Written-back pages
  // would carry sizes and times that this mount made up, and would reach the share after the lock is gone.
  conn->want &= ~static_cast<unsigned>(FUSE_CAP_HANDLE_KILLPRIV | FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_WRITEBACK_CACHE);
}

}  // namespace ops

const fuse_lowlevel_ops& ops_table() {
  static const fuse_lowlevel_ops table = [] {
    fuse_lowlevel_ops t{};
    t.init = ops::init;
    t.lookup = ops::lookup;
    t.forget = ops::forget;
    t.forget_multi = ops::forget_multi;
    t.readlink = ops::readlink;
    t.mknod = ops::mknod;
    t.mkdir = ops::mkdir;
    t.symlink = ops::symlink;
    t.link = ops::link;
    t.unlink = ops::unlink;
    t.rmdir = ops::rmdir;
    t.rename = ops::rename;
    t.opendir = ops::opendir;
    t.readdir = ops::readdir;
    t.readdirplus = ops::readdirplus;
    t.releasedir = ops::releasedir;
    t.fsyncdir = ops::fsyncdir;
    t.create = ops::create;
    t.open = ops::open;
    t.read = ops::read;
    t.write_buf = ops::write_buf;
    t.flush = ops::flush;
    t.release = ops::release;
    t.fsync = ops::fsync;
    t.lseek = ops::lseek;
    t.fallocate = ops::fallocate;
    t.copy_file_range = ops::copy_file_range;
    t.getattr = ops::getattr;
    t.setattr = ops::setattr;
    t.statfs = ops::statfs;
    t.access = ops::access;
    t.setxattr = ops::setxattr;
    t.getxattr = ops::getxattr;
    t.listxattr = ops::listxattr;
    t.removexattr = ops::removexattr;
    t.getlk = ops::getlk;
    t.setlk = ops::setlk;
    t.flock = ops::flock;
    return t;
  }();
  return table;
}

}  // namespace latchfs::fusefs
