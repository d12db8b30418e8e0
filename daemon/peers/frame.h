// SPDX-License-Identifier: Apache-2.0
//
// Frames on a byte stream: four bytes of length, most significant first, then so many bytes.
//
// Threads: a FrameReader belongs to one thread.
// Invariants: 1. A reader that has met a length outside 1 .. kFrameBytesMax stays broken: there is no way to find the
//                next frame.
// Limits: kFrameBytesMax a frame; a reader holds one incomplete frame and what came in one append().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace popgate {

inline constexpr std::size_t kFrameHeadBytes = 4;
inline constexpr std::size_t kFrameBytesMax = std::size_t{64} * 1024;

/// The frame around a payload of 1 .. kFrameBytesMax bytes.
[[nodiscard]] std::string frame_of(std::string_view payload);

class FrameReader {
 public:
  void append(std::string_view bytes);
  /// The next complete payload, valid until the next call of append().
  [[nodiscard]] std::optional<std::string_view> next();
  [[nodiscard]] bool broken() const { return broken_; }
  /// The length that broke it.
  [[nodiscard]] std::size_t refused_bytes() const { return refused_bytes_; }

 private:
  std::string buffer_;
  std::size_t begin_ = 0;  // of what has not been taken yet
  std::size_t refused_bytes_ = 0;
  bool broken_ = false;
};

}  // namespace popgate
