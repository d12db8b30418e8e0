// SPDX-License-Identifier: Apache-2.0
#include "replay/log_unpack.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <vector>

namespace popgate {
namespace {

constexpr std::size_t kPackedBytes = 65536;
constexpr Bytef kGzipFirstByte = 0x1f;
constexpr std::uint64_t kGzipMagicBytes = 2;
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
        Result<std::size_t> got = fetch();
        if (!got) return got;
        if (*got == 0) return in_member_ ? Result<std::size_t>(Error{name_ + ": the gzip data ends in the middle"}) : 0;
      }
      if (!in_member_) {
        member_begin_ = position();
        if (members_ > 0 && *stream_.next_in != kGzipFirstByte) return end_behind_members();
      }
      in_member_ = true;
      const int outcome = inflate(&stream_, Z_NO_FLUSH);
      if (outcome == Z_STREAM_END) {
        ++members_;
        in_member_ = false;
        inflateReset(&stream_);
      } else if (outcome != Z_OK && outcome != Z_BUF_ERROR) {
        const bool is_no_member = members_ > 0 && position() - member_begin_ <= kGzipMagicBytes;
        if (is_no_member) return end_behind_members();
        return Error{name_ + ": the gzip data is damaged: " + (stream_.msg != nullptr ? stream_.msg : "unknown")};
      }
    }
    return out.size() - stream_.avail_out;
  }

 private:
  /// Of the next byte of the file to be unpacked.
  [[nodiscard]] std::uint64_t position() const { return fetched_ - stream_.avail_in; }

  Result<std::size_t> fetch() {
    Result<std::size_t> got = packed_->read(input_);
    if (!got) return got;
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(*got);
    fetched_ += *got;
    return got;
  }

  // As gzip does it: zeros up to the end are a tape's padding; anything else does not belong there, and may be a log
  // that was appended without being packed.
  Result<std::size_t> end_behind_members() {
    bool is_padding = position() == member_begin_;
    do {
      const std::span<const Bytef> rest(stream_.next_in, stream_.avail_in);
      is_padding = is_padding && std::ranges::all_of(rest, [](Bytef byte) { return byte == 0; });
      stream_.avail_in = 0;
      const Result<std::size_t> got = fetch();
      if (!got) return got;
    } while (stream_.avail_in > 0);
    in_member_ = false;
    if (is_padding) return 0;
    return Error{name_ + ": found " + std::to_string(fetched_ - member_begin_) + " bytes at byte " +
                 std::to_string(member_begin_) +
                 ", behind the last gzip member, that are not read, allowed: another member, or zeros to the end"};
  }

  std::unique_ptr<ByteSource> packed_;
  std::string name_;
  std::vector<char> input_;
  z_stream stream_{};
  bool ready_ = false;
  bool in_member_ = false;
  std::uint64_t members_ = 0;
  std::uint64_t fetched_ = 0;       // bytes of the file
  std::uint64_t member_begin_ = 0;  // of this member, or of what should be the next
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
