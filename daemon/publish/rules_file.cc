// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/rules_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "daemon/disk_room.h"
#include "daemon/file_error.h"
#include "daemon/whole_write.h"

namespace popgate {
namespace {

// A full tmpfs shows here, and not later as SIGBUS.
Status write_block(int descriptor, std::span<const std::byte> block, const std::string& path) {
  if (write_whole(descriptor, {reinterpret_cast<const char*>(block.data()), block.size()})) return {};
  return Error{file_error(path, "cannot write the compiled rules").text + room_text(path, block.size())};
}

}  // namespace

Result<RulesFile> RulesFile::write(const std::string& path, std::span<const std::byte> block, std::string& note) {
  Result<RulesFile> named = write_named(path, block);
  if (named) return named;
  Result<RulesFile> sealed = write_sealed(block);
  if (!sealed) return Error{named.error() + "; " + sealed.error()};
  note = named.error() + "; workers get the rules from memory instead";
  return sealed;
}

Result<RulesFile> RulesFile::write_sealed(std::span<const std::byte> block) {
  static constexpr char kName[] = "popgate-rules";
  const FileDescriptor writable(memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!writable.is_open()) return file_error(kName, "cannot create the file");
  if (const Status written = write_block(writable.get(), block, kName); !written) return Error{written.error()};
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (fchmod(writable.get(), 0600) != 0 || fcntl(writable.get(), F_ADD_SEALS, kSeals) != 0) {
    return file_error(kName, "cannot seal");
  }
  const std::string again = "/proc/self/fd/" + std::to_string(writable.get());
  FileDescriptor readable(::open(again.c_str(), O_RDONLY | O_CLOEXEC));
  if (!readable.is_open()) return file_error(again, "cannot open read-only");
  return RulesFile(std::move(readable), block.size());
}

Result<RulesFile> RulesFile::write_named(const std::string& path, std::span<const std::byte> block) {
  const std::string unfinished = path + ".new";
  ::unlink(unfinished.c_str());  // left by a daemon that was killed while it wrote
  {
    const FileDescriptor writable(
        ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!writable.is_open()) return file_error(unfinished, "cannot create the file");
    if (const Status written = write_block(writable.get(), block, unfinished); !written) {
      ::unlink(unfinished.c_str());
      return Error{written.error()};
    }
  }
  FileDescriptor readable(::open(unfinished.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!readable.is_open() || ::rename(unfinished.c_str(), path.c_str()) != 0) {
    const Error error = file_error(path, "cannot publish the compiled rules");
    ::unlink(unfinished.c_str());
    return error;
  }
  return RulesFile(std::move(readable), block.size());
}

}  // namespace popgate
