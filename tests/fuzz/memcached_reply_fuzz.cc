// SPDX-License-Identifier: Apache-2.0
//
// Any bytes, cut anywhere, give the same replies as in one piece, within their bounds. The first byte says how the rest
// is cut.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/count/memcached_reply.h"

namespace {

using popgate::MemcachedReply;
using popgate::MemcachedReplyParser;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Outcome {
  std::string replies;
  bool good = true;
  bool operator==(const Outcome&) const = default;
};

Outcome read_in_pieces(std::string_view bytes, std::size_t piece_bytes) {
  MemcachedReplyParser parser;
  Outcome outcome;
  while (outcome.good && !bytes.empty()) {
    const std::vector<char> piece(bytes.begin(),
                                  bytes.begin() + static_cast<std::ptrdiff_t>(std::min(piece_bytes, bytes.size())));
    bytes.remove_prefix(piece.size());
    outcome.good = parser.feed({piece.data(), piece.size()}, [&](const MemcachedReply& reply) {
      require(reply.key.size() + reply.text.size() <= MemcachedReplyParser::kReplyBytesMax);
      (void)popgate::execution_of(reply);
      outcome.replies += std::to_string(static_cast<int>(reply.kind)) + ' ' + std::to_string(reply.number) + ' ' +
                         std::to_string(reply.is_number) + ' ' + std::string(reply.key) + ' ' +
                         std::string(reply.text) + '\n';
      return true;
    });
    require(outcome.good == parser.fault().empty());
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  if (bytes == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), bytes - 1);
  require(read_in_pieces(text, text.size() + 1) == read_in_pieces(text, std::size_t{data[0]} + 1));
  return 0;
}
