// SPDX-License-Identifier: Apache-2.0
#include "replay/log_unpack.h"

#include <zlib.h>
#include <zstd.h>

#include <vector>

namespace popgate {
namespace {

constexpr std::size_t kPackedBytes = 65536;
constexpr int kGzipWindowBits = 15 + 16;  // 16: with a gzip header, zlib.h

class GzipBytes final : public ByteSource {
 public:
  GzipBytes(std::unique_ptr<ByteSource> packed, std::string name)
      : packed_(std::move(packed)), name_(std::move(name)), input_(kPackedBytes) {
    ready_ = inflateInit2(&stream_, kGzipWindowBits) == Z_OK;
  }
  ~GzipBytes() override {
    if (ready_) inflateEnd(&stream_);
  }
  GzipBytes(const GzipBytes&) = delete;
  GzipBytes& operator=(const GzipBytes&) = delete;

  [[nodiscard]] Result<std::size_t> read(std::span<char> out) override {
    if (!ready_) return Error{name_ + ": no memory to unpack it"};
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    while (stream_.avail_out == out.size()) {
      if (stream_.avail_in == 0) {
        Result<std::size_t> got = packed_->read(input_);
        if (!got) return got;
        if (*got == 0) return in_member_ ? Result<std::size_t>(Error{name_ + ": the gzip data ends in the middle"}) : 0;
        stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
        stream_.avail_in = static_cast<uInt>(*got);
      }
      if (!in_member_ && members_ > 0 && *stream_.next_in != 0x1f) return end_at_padding();
      in_member_ = true;
      const int outcome = inflate(&stream_, Z_NO_FLUSH);
      if (outcome == Z_STREAM_END) {
        ++members_;
        in_member_ = false;
        inflateReset(&stream_);
      } else if (outcome != Z_OK && outcome != Z_BUF_ERROR) {
        return Error{name_ + ": the gzip data is damaged: " + (stream_.msg != nullptr ? stream_.msg : "unknown")};
      }
    }
    return out.size() - stream_.avail_out;
  }

 private:
  // What follows the last member and is no member (zeros of a tape block) is not ours.
  std::size_t end_at_padding() {
    stream_.avail_in = 0;
    packed_ = std::make_unique<Nothing>();
    return 0;
  }
  class Nothing final : public ByteSource {
    [[nodiscard]] Result<std::size_t> read(std::span<char>) override { return std::size_t{0}; }
  };

  std::unique_ptr<ByteSource> packed_;
  std::string name_;
  std::vector<char> input_;
  z_stream stream_{};
  bool ready_ = false;
  bool in_member_ = false;
  std::uint64_t members_ = 0;
};

class ZstdBytes final : public ByteSource {
 public:
  ZstdBytes(std::unique_ptr<ByteSource> packed, std::string name)
      : packed_(std::move(packed)), name_(std::move(name)), bytes_(kPackedBytes), stream_(ZSTD_createDStream()) {}
  ~ZstdBytes() override { ZSTD_freeDStream(stream_); }
  ZstdBytes(const ZstdBytes&) = delete;
  ZstdBytes& operator=(const ZstdBytes&) = delete;

  [[nodiscard]] Result<std::size_t> read(std::span<char> out) override {
    if (stream_ == nullptr) return Error{name_ + ": no memory to unpack it"};
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    while (output.pos == 0) {
      // Asked first without new input: the decompressor may still hold what did not fit into the last buffer.
      const std::size_t before = input_.pos;
      const std::size_t outcome = ZSTD_decompressStream(stream_, &output, &input_);
      if (ZSTD_isError(outcome) != 0) {
        return Error{name_ + ": the zstd data is damaged: " + ZSTD_getErrorName(outcome)};
      }
      if (input_.pos != before || output.pos > 0) in_frame_ = outcome != 0;
      if (output.pos > 0) break;
      if (input_.pos < input_.size) continue;
      Result<std::size_t> got = packed_->read(bytes_);
      if (!got) return got;
      if (*got == 0) return in_frame_ ? Result<std::size_t>(Error{name_ + ": the zstd data ends in the middle"}) : 0;
      input_ = {bytes_.data(), *got, 0};
    }
    return output.pos;
  }

 private:
  std::unique_ptr<ByteSource> packed_;
  std::string name_;
  std::vector<char> bytes_;
  ZSTD_inBuffer input_{nullptr, 0, 0};
  ZSTD_DStream* stream_;
  bool in_frame_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> unpack_gzip(std::unique_ptr<ByteSource> packed, std::string name) {
  return std::make_unique<GzipBytes>(std::move(packed), std::move(name));
}

std::unique_ptr<ByteSource> unpack_zstd(std::unique_ptr<ByteSource> packed, std::string name) {
  return std::make_unique<ZstdBytes>(std::move(packed), std::move(name));
}

}  // namespace popgate
