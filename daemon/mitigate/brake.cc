// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/brake.h"

#include <sodium.h>

#include <tuple>

namespace popgate {
namespace {

auto content(const Brake& b) { return std::tie(b.version, b.off, b.origin, b.ordered_at, b.ordered_by, b.reason); }

void append(std::string& bytes, std::uint64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift & 0xff));
}

}  // namespace

std::string_view brake_origin_name(BrakeOrigin origin) {
  switch (origin) {
    case BrakeOrigin::kOperator:
      return "operator";
    case BrakeOrigin::kFuse:
      return "fuse";
    case BrakeOrigin::kRecovered:
      return "recovered";
  }
  return "";
}

bool stands_over(const Brake& a, const Brake& b) { return content(a) > content(b); }

std::uint64_t brake_hash(const Brake& brake) {
  std::string bytes;
  append(bytes, brake.rule);
  append(bytes, brake.version.stamp);
  append(bytes, brake.version.node);
  append(bytes, std::uint64_t{brake.off} << 8 | static_cast<std::uint64_t>(brake.origin));
  append(bytes, static_cast<std::uint64_t>(brake.ordered_at.time_since_epoch().count()));
  append(bytes, brake.ordered_by.size());
  bytes += brake.ordered_by;
  bytes += brake.reason;
  // A fixed key: every node must get the same.
  static constexpr unsigned char kBrakeKey[crypto_shorthash_KEYBYTES] = {'p', 'o', 'p', 'g', 'a', 't', 'e', ' ',
                                                                         'b', 'r', 'a', 'k', 'e', 0,   0,   0};
  unsigned char hash[crypto_shorthash_BYTES];
  crypto_shorthash(hash, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), kBrakeKey);
  std::uint64_t folded = 0;
  for (const unsigned char byte : hash) folded = folded << 8 | byte;
  return folded;
}

}  // namespace popgate
