// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/rules_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "daemon/file_error.h"
#include "daemon/whole_write.h"

namespace popgate {

Result<RulesFile> RulesFile::write(const std::string& path, std::span<const std::byte> block) {
  const std::string unfinished = path + ".new";
  ::unlink(unfinished.c_str());  // left by a daemon that was killed while it wrote
  {
    const FileDescriptor writable(
        ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!writable.is_open()) return file_error(unfinished, "cannot create the file");
    // A full tmpfs shows here, and not later as SIGBUS.
    if (!write_whole(writable.get(), {reinterpret_cast<const char*>(block.data()), block.size()})) {
      Error error = file_error(unfinished, "cannot write the compiled rules");
      ::unlink(unfinished.c_str());
      return error;
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
