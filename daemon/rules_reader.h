// SPDX-License-Identifier: Apache-2.0
//
// Reads the `rules:` of the configuration file.
//
// Threads: pure.
// Invariants: 1. What it returns without a fault keeps rules.h's invariants, and compile_rules() takes it.
#pragma once

#include <vector>

#include "daemon/config_section.h"
#include "daemon/rules.h"

namespace popgate {

/// The rules of the file's top section, numbered in order. Faults go to the reading; the rules are then not to be used.
[[nodiscard]] std::vector<Rule> read_rules(const Section& top, milliseconds clock_tolerance);

}  // namespace popgate
