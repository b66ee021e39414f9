#pragma once
#include "fusefs/fuse_api.hpp"

/// The callbacks of libfuse, thin: take the request, find the file, make the call, answer. Any worker thread.
namespace latchfs::fusefs::ops {

void init(void* userdata, fuse_conn_info* conn);

// ops_lookup.cpp
void lookup(fuse_req_t raw, fuse_ino_t parent, const char* name);
void forget(fuse_req_t raw, fuse_ino_t node, uint64_t count);
void forget_multi(fuse_req_t raw, size_t count, fuse_forget_data* forgets);
void readlink(fuse_req_t raw, fuse_ino_t node);
void mknod(fuse_req_t raw, fuse_ino_t parent, const char* name, mode_t mode, dev_t rdev);
void mkdir(fuse_req_t raw, fuse_ino_t parent, const char* name, mode_t mode);
void symlink(fuse_req_t raw, const char* target, fuse_ino_t parent, const char* name);
void link(fuse_req_t raw, fuse_ino_t node, fuse_ino_t new_parent, const char* new_name);
void unlink(fuse_req_t raw, fuse_ino_t parent, const char* name);
void rmdir(fuse_req_t raw, fuse_ino_t parent, const char* name);
void rename(fuse_req_t raw, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
            unsigned int flags);

// ops_dir.cpp
void opendir(fuse_req_t raw, fuse_ino_t node, fuse_file_info* fi);
void readdir(fuse_req_t raw, fuse_ino_t node, size_t size, off_t offset, fuse_file_info* fi);
void readdirplus(fuse_req_t raw, fuse_ino_t node, size_t size, off_t offset, fuse_file_info* fi);
void releasedir(fuse_req_t raw, fuse_ino_t node, fuse_file_info* fi);
void fsyncdir(fuse_req_t raw, fuse_ino_t node, int datasync, fuse_file_info* fi);

// ops_file.cpp
void create(fuse_req_t raw, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* fi);
void open(fuse_req_t raw, fuse_ino_t node, fuse_file_info* fi);
void read(fuse_req_t raw, fuse_ino_t node, size_t size, off_t offset, fuse_file_info* fi);
void flush(fuse_req_t raw, fuse_ino_t node, fuse_file_info* fi);
void release(fuse_req_t raw, fuse_ino_t node, fuse_file_info* fi);
void fsync(fuse_req_t raw, fuse_ino_t node, int datasync, fuse_file_info* fi);
void lseek(fuse_req_t raw, fuse_ino_t node, off_t offset, int whence, fuse_file_info* fi);

// ops_write.cpp
void write_buf(fuse_req_t raw, fuse_ino_t node, fuse_bufvec* in, off_t offset, fuse_file_info* fi);
void fallocate(fuse_req_t raw, fuse_ino_t node, int mode, off_t offset, off_t length, fuse_file_info* fi);
void copy_file_range(fuse_req_t raw, fuse_ino_t node_in, off_t offset_in, fuse_file_info* fi_in, fuse_ino_t node_out,
                     off_t offset_out, fuse_file_info* fi_out, size_t length, int flags);

// ops_attr.cpp
void getattr(fuse_req_t raw, fuse_ino_t node, fuse_file_info* fi);
void setattr(fuse_req_t raw, fuse_ino_t node, struct stat* attr, int to_set, fuse_file_info* fi);
void statfs(fuse_req_t raw, fuse_ino_t node);
void access(fuse_req_t raw, fuse_ino_t node, int mask);

// ops_xattr.cpp
void setxattr(fuse_req_t raw, fuse_ino_t node, const char* name, const char* value, size_t size, int flags);
void getxattr(fuse_req_t raw, fuse_ino_t node, const char* name, size_t size);
void listxattr(fuse_req_t raw, fuse_ino_t node, size_t size);
void removexattr(fuse_req_t raw, fuse_ino_t node, const char* name);

// ops_lock.cpp
void getlk(fuse_req_t raw, fuse_ino_t node, fuse_file_info* fi, struct flock* lock);
void setlk(fuse_req_t raw, fuse_ino_t node, fuse_file_info* fi, struct flock* lock, int sleep);
void flock(fuse_req_t raw, fuse_ino_t node, fuse_file_info* fi, int op);

}  // namespace latchfs::fusefs::ops
