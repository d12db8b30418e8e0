// SPDX-License-Identifier: Apache-2.0
#include "daemon/hash_secret.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>

#include "daemon/durable_file.h"
#include "daemon/file_error.h"
#include "daemon/private_file.h"
#include "daemon/whole_write.h"
#include "libclient/file_descriptor.h"
#include "libclient/hex.h"

namespace popgate {
namespace {

constexpr std::size_t kFileBytesMax = 1024;  // more than a secret has, so that an error can count them

std::string hex_text(const HashSecret& secret) {
  std::string text;
  for (const std::uint8_t byte : secret.bytes) {
    text += kHexDigits[byte >> 4];
    text += kHexDigits[byte & 15];
  }
  return text + "\n";
}

/// Written and synced beside its place and linked there whole: link() does not replace what another process was quicker
/// to make. The folder is synced too: a node whose secret a loss of power took would make another one, and know none of
/// its blocks.
Status create(const std::string& path, bool& is_new) {
  HashSecret secret;
  if (getrandom(secret.bytes.data(), secret.bytes.size(), 0) != static_cast<ssize_t>(secret.bytes.size()))
    return file_error(path, "cannot get random numbers for it");
  const std::string draft = path + "." + std::to_string(getpid()) + ".new";
  unlink(draft.c_str());
  const FileDescriptor file(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open()) return file_error(draft, "cannot create it");
  Status status;
  if (!write_whole(file.get(), hex_text(secret)) || fsync(file.get()) != 0)
    status = file_error(draft, "cannot write it");
  is_new = status.ok() && link(draft.c_str(), path.c_str()) == 0;
  if (status && !is_new && errno != EEXIST) status = file_error(path, "cannot create it");
  unlink(draft.c_str());
  if (is_new && status) {
    SystemDisk disk;
    status = disk.sync_folder(folder_of(path));
  }
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
  const auto text = read_private_file(path, kFileBytesMax, "the secret");
  if (!text) return Error{text.error()};
  auto secret = parse_secret(*text);
  return secret ? secret : Error{path + ": " + secret.error()};
}

Result<HashSecret> load_or_create_secret(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    bool is_new = false;
    if (Status status = create(path, is_new); !status) return Error{status.error()};
  }
  return load_secret(path);
}

Result<HashSecret> create_secret(const std::string& path) {
  bool is_new = false;
  if (Status status = create(path, is_new); !status) return Error{status.error()};
  if (!is_new) return Error{path + ": found something there, allowed: nothing; a secret is never written over"};
  return load_secret(path);
}

std::uint64_t secret_id(const HashSecret& secret) {
  static constexpr std::string_view kDomain = "popgate: which secret";
  unsigned char hash[16];
  static_assert(sizeof hash >= crypto_generichash_BYTES_MIN);
  crypto_generichash(hash, sizeof hash, reinterpret_cast<const unsigned char*>(kDomain.data()), kDomain.size(),
                     secret.bytes.data(), secret.bytes.size());
  std::uint64_t id = 0;
  for (int i = 0; i < 8; ++i) id = id << 8 | hash[i];
  return id;
}

}  // namespace popgate
