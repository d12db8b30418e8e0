// SPDX-License-Identifier: Apache-2.0
#include "daemon/hash_secret.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "libclient/file_descriptor.h"

namespace popgate {
namespace {

constexpr std::size_t kFileBytesMax = 64;  // more than a secret has, so that a longer file is noticed

Error system_error(const std::string& path, const char* what) {
  return {path + ": cannot " + what + ": " + std::strerror(errno)};
}

Status check_owner(const std::string& path, int descriptor) {
  struct stat about {};
  if (fstat(descriptor, &about) != 0) return system_error(path, "look at it");
  if (!S_ISREG(about.st_mode)) return Error{path + ": found something that is not a file, allowed: a file"};
  if ((about.st_mode & 077) != 0) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(about.st_mode & 07777));
    return Error{path + ": found mode " + mode + ", allowed: 0600 or 0400 (others must not read the secret)"};
  }
  if (about.st_uid != geteuid() && about.st_uid != 0) {
    return Error{path + ": found owner " + std::to_string(about.st_uid) + ", allowed: " + std::to_string(geteuid()) +
                 ", the user of this process, or root"};
  }
  return {};
}

std::string hex_text(const HashSecret& secret) {
  std::string text;
  for (const std::uint8_t byte : secret.bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text + "\n";
}

bool write_all(int descriptor, const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(descriptor, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    written += static_cast<std::size_t>(count);
  }
  return fsync(descriptor) == 0;
}

/// Written beside its place and linked there whole: link() does not replace what another process was quicker to make.
Status create(const std::string& path) {
  HashSecret secret;
  if (getrandom(secret.bytes.data(), secret.bytes.size(), 0) != static_cast<ssize_t>(secret.bytes.size()))
    return system_error(path, "get random numbers for it");
  const std::string draft = path + "." + std::to_string(getpid()) + ".new";
  unlink(draft.c_str());
  const FileDescriptor file(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open()) return system_error(draft, "create it");
  Status status;
  if (!write_all(file.get(), hex_text(secret))) status = system_error(draft, "write it");
  if (status && link(draft.c_str(), path.c_str()) != 0 && errno != EEXIST) status = system_error(path, "create it");
  unlink(draft.c_str());
  return status;
}

}  // namespace

Result<HashSecret> parse_secret(const std::string& text) {
  std::string digits = text;
  while (!digits.empty() && (digits.back() == '\n' || digits.back() == '\r')) digits.pop_back();
  Key halves;
  if (digits.size() != 32 || !parse_key_text(digits, halves))
    return Error{"found " + std::to_string(digits.size()) +
                 " characters that are not a secret, allowed: 32 hexadecimal digits"};
  HashSecret secret;
  for (std::size_t i = 0; i < 16; ++i) {
    const std::uint64_t half = i < 8 ? halves.hi : halves.lo;
    secret.bytes[i] = static_cast<std::uint8_t>(half >> (56 - 8 * (i % 8)) & 0xff);
  }
  return secret;
}

Result<HashSecret> load_secret(const std::string& path) {
  // Without waiting: a pipe of that name must not hang the start.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return system_error(path, "open it");
  if (Status status = check_owner(path, file.get()); !status) return Error{status.error()};
  char buffer[kFileBytesMax];
  const ssize_t bytes = read(file.get(), buffer, sizeof buffer);
  if (bytes < 0) return system_error(path, "read it");
  auto secret = parse_secret(std::string(buffer, static_cast<std::size_t>(bytes)));
  return secret ? secret : Error{path + ": " + secret.error()};
}

Result<HashSecret> load_or_create_secret(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    if (Status status = create(path); !status) return Error{status.error()};
  }
  return load_secret(path);
}

}  // namespace popgate
