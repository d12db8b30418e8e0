// SPDX-License-Identifier: Apache-2.0
//
// The nutcracker.yml that fits a node's `counters` section: what twemproxy must do to place every key as Popgate does
// and to answer in time. twemproxy-config/README.md says why each value is what it is.
//
// Threads: a pure function.
#pragma once

#include <string>

namespace popgate {

struct Config;

/// The configuration has counters and a proxy, which is where twemproxy will listen.
[[nodiscard]] std::string nutcracker_yml(const Config& config);

/// twemproxy gives a shard up before the daemon gives twemproxy up, so that only the replies of that shard are lost.
[[nodiscard]] constexpr int nutcracker_timeout_ms(int counters_timeout_ms) { return counters_timeout_ms * 3 / 4; }

}  // namespace popgate
