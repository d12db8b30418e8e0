// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/request_target.h"

#include <algorithm>
#include <cstring>

#include "libclient/hex.h"
#include "libclient/match/byte_set.h"

namespace popgate {
namespace {

constexpr char kUpperHex[] = "0123456789ABCDEF";

/// The byte that `%XY` at the start of `text` stands for; -1 when there is none.
int encoded_byte(std::string_view text) noexcept {
  if (text.size() < 3 || text[0] != '%') return -1;
  const int high = hex_value(text[1]);
  const int low = hex_value(text[2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/// These would mean something else when they stood in the path themselves.
bool stays_encoded(int byte) noexcept {
  return byte < 0x20 || byte == 0x7f || byte == '/' || byte == '?' || byte == '#' || byte == '%';
}

/// Drops one dot, plain or encoded, from the front of a segment.
bool drop_dot(std::string_view& segment) noexcept {
  const bool plain = segment.starts_with('.');
  if (!plain && encoded_byte(segment) != '.') return false;
  segment.remove_prefix(plain ? 1 : 3);
  return true;
}

enum class Segment { kEmpty, kHere, kUp, kName };

Segment kind_of(std::string_view segment) noexcept {
  if (segment.empty()) return Segment::kEmpty;
  if (!drop_dot(segment)) return Segment::kName;
  if (segment.empty()) return Segment::kHere;
  return drop_dot(segment) && segment.empty() ? Segment::kUp : Segment::kName;
}

/// Builds the resolved path. Segments beyond the buffer are only counted, so that `..` takes them back again.
class PathWriter {
 public:
  explicit PathWriter(PathBuffer& buffer) noexcept : buffer_(buffer) {}

  void append(std::string_view segment) noexcept {
    if (beyond_ > 0) {
      ++beyond_;
      return;
    }
    const std::size_t start = used_;
    bool fits = put('/');
    while (fits && !segment.empty()) fits = put_next(segment);
    if (fits) return;
    used_ = kPathBytesMax;
    beyond_ = 1;
    beyond_start_ = start;
  }

  void up() noexcept {
    if (beyond_ > 0) {
      if (--beyond_ == 0) used_ = beyond_start_;
      return;
    }
    while (used_ > 0 && buffer_.bytes[--used_] != '/') {
    }
  }

  [[nodiscard]] std::string_view finish(bool folder) noexcept {
    if (folder || used_ == 0) put('/');
    return {buffer_.bytes, used_};
  }

 private:
  bool put(char byte) noexcept {
    if (used_ == kPathBytesMax) return false;
    buffer_.bytes[used_++] = byte;
    return true;
  }

  /// Decodes one byte off the front of `segment`.
  bool put_next(std::string_view& segment) noexcept {
    const int byte = encoded_byte(segment);
    if (byte < 0) {
      const char plain = segment.front();
      segment.remove_prefix(1);
      return put(plain);
    }
    segment.remove_prefix(3);
    if (!stays_encoded(byte)) return put(static_cast<char>(byte));
    return put('%') && put(kUpperHex[byte >> 4]) && put(kUpperHex[byte & 15]);
  }

  PathBuffer& buffer_;
  std::size_t used_ = 0;
  std::size_t beyond_ = 0;        // segments that did not fit, the first of them in part
  std::size_t beyond_start_ = 0;  // where that one begins
};

std::string_view resolve(std::string_view path, PathBuffer& buffer) noexcept {
  PathWriter writer(buffer);
  Segment kind = Segment::kEmpty;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    kind = kind_of(segment);
    if (kind == Segment::kName) writer.append(segment);
    if (kind == Segment::kUp) writer.up();
  }
  return writer.finish(kind != Segment::kName);
}

/// Where the path ends, and whether anything before that must be resolved or decoded.
struct Scan {
  std::size_t bytes;
  bool needs_work;
};

constexpr ByteSet kMeansSomething("?#%/");

Scan scan(std::string_view path) noexcept {
  bool needs_work = false;
  for (std::size_t i = kMeansSomething.find_in(path); i < path.size(); i = kMeansSomething.find_in(path, i + 1)) {
    const char c = path[i];
    if (c == '?' || c == '#') return {i, needs_work};
    // `/.` also begins names like `/.well-known`; they take the long way and come out unchanged.
    const char after = i + 1 < path.size() ? path[i + 1] : '\0';
    if (c == '%' || after == '/' || after == '.') needs_work = true;
  }
  return {path.size(), needs_work};
}

/// The length of `scheme://` at the front; 0 when there is none.
std::size_t scheme_bytes(std::string_view target) noexcept {
  const std::size_t colon = target.find(':');
  if (colon == 0 || colon == std::string_view::npos || target.substr(colon, 3) != "://") return 0;
  const bool scheme = std::all_of(target.begin(), target.begin() + static_cast<std::ptrdiff_t>(colon), [](char c) {
    const char lower = static_cast<char>(c | 0x20);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  });
  return scheme ? colon + 3 : 0;
}

std::string_view without_user(std::string_view authority) noexcept {
  const std::size_t at = authority.rfind('@');
  return at == std::string_view::npos ? authority : authority.substr(at + 1);
}

}  // namespace

std::string_view normal_path(std::string_view path, PathBuffer& buffer) noexcept {
  const Scan found = scan(path);
  path = path.substr(0, found.bytes);
  return found.needs_work && path.starts_with('/') ? resolve(path, buffer) : path;
}

RequestTarget read_target(std::string_view target, PathBuffer& buffer) noexcept {
  if (target.starts_with('/')) return {{}, normal_path(target, buffer)};
  const std::size_t scheme = scheme_bytes(target);
  if (scheme == 0) return {{}, normal_path(target, buffer)};
  target.remove_prefix(scheme);
  const std::string_view authority = target.substr(0, target.find_first_of("/?#"));
  target.remove_prefix(authority.size());
  return {without_user(authority), target.starts_with('/') ? normal_path(target, buffer) : "/"};
}

}  // namespace popgate
