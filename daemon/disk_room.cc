// SPDX-License-Identifier: Apache-2.0
#include "daemon/disk_room.h"

#include <sys/statvfs.h>

#include <filesystem>

namespace popgate {

std::string room_text(const std::string& path, std::size_t bytes) {
  const std::string needed = " (" + std::to_string(bytes) + " bytes are needed";
  struct statvfs disk = {};
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (statvfs(path.c_str(), &disk) != 0 && statvfs(folder.c_str(), &disk) != 0) return needed + ")";
  // As for a user without privileges: what is kept for root is not the daemon's.
  return needed + ", " + std::to_string(std::size_t{disk.f_bavail} * disk.f_frsize) + " are free)";
}

}  // namespace popgate
