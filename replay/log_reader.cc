// SPDX-License-Identifier: Apache-2.0
#include "replay/log_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "replay/log_unpack.h"

namespace popgate {
namespace {

constexpr std::size_t kReadBytes = 65536;
constexpr std::size_t kMagicBytes = 4;

class FileBytes final : public ByteSource {
 public:
  FileBytes(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  ~FileBytes() override {
    if (fd_ != STDIN_FILENO) close(fd_);
  }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  [[nodiscard]] Result<std::size_t> read(std::span<char> out) override {
    for (;;) {
      const ssize_t got = ::read(fd_, out.data(), out.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) return Error{name_ + ": " + std::strerror(errno)};
    }
  }

 private:
  int fd_;
  std::string name_;
};

// Gives back the bytes that were read to look at, then the rest.
class PeekedBytes final : public ByteSource {
 public:
  PeekedBytes(std::string peeked, std::unique_ptr<ByteSource> rest)
      : peeked_(std::move(peeked)), rest_(std::move(rest)) {}
  [[nodiscard]] Result<std::size_t> read(std::span<char> out) override {
    if (given_ == peeked_.size()) return rest_->read(out);
    const std::size_t bytes = std::min(out.size(), peeked_.size() - given_);
    std::memcpy(out.data(), peeked_.data() + given_, bytes);
    given_ += bytes;
    return bytes;
  }

 private:
  std::string peeked_;
  std::size_t given_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

Result<std::string> peek(ByteSource& source) {
  char bytes[kMagicBytes];
  std::size_t have = 0;
  while (have < sizeof bytes) {  // a pipe may give single bytes
    const Result<std::size_t> got = source.read(std::span(bytes).subspan(have));
    if (!got) return Error{got.error()};
    if (*got == 0) break;
    have += *got;
  }
  return std::string(bytes, have);
}

}  // namespace

Result<std::unique_ptr<ByteSource>> open_log_bytes(const std::string& path) {
  const bool standard_input = path == "-";
  const std::string name = standard_input ? "standard input" : path;
  const int fd = standard_input ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Error{name + ": cannot be opened: " + std::strerror(errno)};
  std::unique_ptr<ByteSource> file = std::make_unique<FileBytes>(fd, name);
  const Result<std::string> start = peek(*file);
  if (!start) return Error{start.error()};
  std::unique_ptr<ByteSource> bytes = std::make_unique<PeekedBytes>(*start, std::move(file));
  if (start->starts_with("\x1f\x8b")) return unpack_gzip(std::move(bytes), name);
  if (*start == "\x28\xb5\x2f\xfd") return unpack_zstd(std::move(bytes), name);
  return bytes;
}

LineReader::LineReader(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

// Reads more behind what is unread. False at the end or an error.
bool LineReader::fill() {
  if (at_end_) return false;
  buffer_.erase(0, begin_);
  begin_ = 0;
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kReadBytes);
  const Result<std::size_t> got = source_->read(std::span(buffer_).subspan(before));
  buffer_.resize(before + (got.ok() ? *got : 0));
  if (got.ok() && *got > 0) return true;
  at_end_ = true;
  if (!got.ok()) error_ = got.error();
  return false;
}

bool LineReader::next(LogLine& out) {
  std::size_t searched = 0;
  for (;;) {
    const std::size_t newline = buffer_.find('\n', begin_ + searched);
    const bool whole = newline != std::string::npos;
    const std::size_t bytes = (whole ? newline : buffer_.size()) - begin_;
    const bool last = !whole && at_end_;
    if (skipping_) {
      if (!whole && last) return false;
      begin_ += whole ? bytes + 1 : bytes;
      skipping_ = !whole;
      searched = 0;
    } else if (bytes > kLineBytesMax || whole || (last && bytes > 0)) {
      const bool too_long = bytes > kLineBytesMax;
      out = {std::string_view(buffer_).substr(begin_, std::min(bytes, kLineBytesMax)), ++number_, too_long};
      skipping_ = too_long && !whole;
      begin_ += bytes + (whole ? 1 : 0);
      return true;
    } else if (last) {
      return false;
    } else {
      searched = bytes;
    }
    if (!whole && !fill() && skipping_) return false;
  }
}

}  // namespace popgate
