// SPDX-License-Identifier: Apache-2.0
#include "daemon/durable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "daemon/file_error.h"
#include "daemon/whole_write.h"
#include "libclient/file_descriptor.h"

namespace popgate {
namespace {

Status sync_opened(const std::string& path, int flags) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
  if (!fd.is_open()) return file_error(path, "cannot open to sync it");
  if (::fsync(fd.get()) != 0) return file_error(path, "cannot sync");
  return {};
}

}  // namespace

Status SystemDisk::write(const std::string& path, std::string_view bytes) {
  const FileDescriptor fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!fd.is_open()) return file_error(path, "cannot create");
  if (!write_whole(fd.get(), bytes)) return file_error(path, "cannot write");
  return {};
}

Status SystemDisk::sync(const std::string& path) { return sync_opened(path, O_NOFOLLOW | O_NONBLOCK); }

Status SystemDisk::rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return {};
  return file_error(to, "cannot rename");
}

Status SystemDisk::sync_folder(const std::string& folder) { return sync_opened(folder, O_DIRECTORY); }

std::string unfinished_name(const std::string& path) { return path + ".new"; }

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

Status replace_file(DiskSteps& disk, const std::string& path, std::string_view bytes) {
  if (Status written = disk.write(unfinished_name(path), bytes); !written) return written;
  return finish_replacing(disk, path);
}

Status finish_replacing(DiskSteps& disk, const std::string& path) {
  if (Status synced = disk.sync(unfinished_name(path)); !synced) return synced;
  if (Status renamed = disk.rename(unfinished_name(path), path); !renamed) return renamed;
  return disk.sync_folder(folder_of(path));
}

}  // namespace popgate
