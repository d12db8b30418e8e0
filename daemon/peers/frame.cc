// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/frame.h"

#include "daemon/result.h"

namespace popgate {

std::string frame_of(std::string_view payload) {
  POPGATE_ASSERT(!payload.empty() && payload.size() <= kFrameBytesMax);
  std::string frame;
  frame.reserve(kFrameHeadBytes + payload.size());
  for (int shift = 24; shift >= 0; shift -= 8) frame.push_back(static_cast<char>(payload.size() >> shift & 0xff));
  frame.append(payload);
  return frame;
}

void FrameReader::append(std::string_view bytes) {
  if (broken_) return;
  buffer_.erase(0, begin_);
  begin_ = 0;
  buffer_.append(bytes);
}

std::optional<std::string_view> FrameReader::next() {
  if (broken_ || buffer_.size() - begin_ < kFrameHeadBytes) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = 0; i < kFrameHeadBytes; ++i) {
    length = length << 8 | static_cast<unsigned char>(buffer_[begin_ + i]);
  }
  if (length == 0 || length > kFrameBytesMax) {
    broken_ = true;
    refused_bytes_ = length;
    return std::nullopt;
  }
  if (buffer_.size() - begin_ - kFrameHeadBytes < length) return std::nullopt;
  const std::string_view payload(buffer_.data() + begin_ + kFrameHeadBytes, length);
  begin_ += kFrameHeadBytes + length;
  return payload;
}

}  // namespace popgate
