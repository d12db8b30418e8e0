// SPDX-License-Identifier: Apache-2.0
//
// Log lines from anybody, and files that claim to be packed. The first byte chooses: lines, gzip or zstd.
#include <algorithm>
#include <cstring>
#include <memory>

#include "daemon/result.h"
#include "replay/log_client.h"
#include "replay/log_line.h"
#include "replay/log_reader.h"
#include "replay/log_unpack.h"

namespace {

using namespace popgate;

class Bytes final : public ByteSource {
 public:
  explicit Bytes(std::string_view bytes) : left_(bytes) {}
  [[nodiscard]] Result<std::size_t> read(std::span<char> out) override {
    const std::size_t bytes = std::min({out.size(), left_.size(), std::size_t{1000}});
    std::memcpy(out.data(), left_.data(), bytes);
    left_.remove_prefix(bytes);
    return bytes;
  }

 private:
  std::string_view left_;
};

bool lies_in(std::string_view view, std::string_view whole) {
  return view.empty() || (view.data() >= whole.data() && view.data() + view.size() <= whole.data() + whole.size());
}

void check_line(std::string_view line, LogFormat format) {
  std::string scratch;
  AccessRecord record;
  const ParsedLine parsed = parse_log_line(line, format, scratch, record);
  POPGATE_ASSERT((parsed.reason != nullptr) == (parsed.kind == LineKind::kUnparsable));
  if (parsed.kind != LineKind::kRecord) return;
  POPGATE_ASSERT(!record.client.empty());
  POPGATE_ASSERT(client_address_of(record.client).bytes != 0);
  POPGATE_ASSERT(record.request_bad == record.method.empty() && record.request_bad == record.target.empty());
  for (const std::string_view view : {record.client, record.host, record.request, record.method, record.target,
                                      record.status, record.referer, record.user_agent}) {
    POPGATE_ASSERT(lies_in(view, line) || lies_in(view, scratch));
  }
  (void)unescape_log_text(record.target);
}

void check_lines(std::unique_ptr<ByteSource> source) {
  constexpr std::size_t kLinesMax = 10'000;  // a few bytes may unpack to gigabytes
  LineReader reader(std::move(source));
  LogLine line;
  for (std::size_t i = 1; i <= kLinesMax && reader.next(line); ++i) {
    POPGATE_ASSERT(line.number == i && line.text.size() <= kLineBytesMax);
    (void)format_vote(line.text);
    check_line(line.text, LogFormat::kCombined);
    check_line(line.text, LogFormat::kVhost);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  if (bytes == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, bytes - 1);
  auto source = std::make_unique<Bytes>(text);
  switch (data[0] % 4) {
    case 1:
      check_lines(unpack_gzip(std::move(source), "gzip"));
      break;
    case 2:
      check_lines(unpack_zstd(std::move(source), "zstd"));
      break;
    default:
      check_lines(std::move(source));
      break;
  }
  return 0;
}
