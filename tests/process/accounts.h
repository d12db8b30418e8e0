// SPDX-License-Identifier: Apache-2.0
//
// What daemons say of every hit of a rule (the ledger's columns), as `GET /rules` gives it.
#pragma once

#include <cstdint>
#include <string>

#include "tests/process/pop.h"

namespace popgate::process {

struct Account {
  std::uint64_t recorded = 0;
  std::uint64_t delivered = 0;
  std::uint64_t uncertain = 0;
  std::uint64_t dropped = 0;  // by the daemon and by workers
  std::uint64_t expired = 0;
  std::uint64_t lost = 0;
  std::uint64_t pending = 0;  // in rings and in the daemon

  /// Promise 3, exactly.
  [[nodiscard]] bool adds_up() const { return recorded == delivered + uncertain + dropped + expired + lost + pending; }
};

[[nodiscard]] Account account(const Node& node, const std::string& rule);
/// Of all nodes together.
[[nodiscard]] Account total_account(Pop& pop, const std::string& rule);

}  // namespace popgate::process
