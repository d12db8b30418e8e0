// SPDX-License-Identifier: Apache-2.0
#include "replay/spread.h"

#include <cstring>

namespace popgate {

std::uint64_t client_number(const ClientAddress& address) {
  std::uint64_t words[2] = {};
  std::memcpy(words, address.octets, address.bytes);
  std::uint64_t mixed = (words[0] ^ address.bytes) * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 32 ^ words[1]) * 0xd6e8feb86659fd93;
  return mixed ^ mixed >> 32;
}

unsigned NodeChooser::choose(std::uint64_t client) {
  switch (spread_) {
    case Spread::kRoundRobin:
      return static_cast<unsigned>(turn_++ % nodes_);
    case Spread::kByClient:
      return static_cast<unsigned>(client % nodes_);
    case Spread::kRandom:
      return static_cast<unsigned>(random_() % nodes_);
  }
  return 0;
}

}  // namespace popgate
