// SPDX-License-Identifier: Apache-2.0
//
// Reads a rule's `match:` (which requests) and `key:` (which identity).
//
// Hosts, paths and methods must stand in the form to which the matcher brings those of a request, because another form
// would never match; the error names the right one.
//
// Threads: pure.
#pragma once

#include <vector>

#include "daemon/config_section.h"
#include "daemon/rules.h"

namespace popgate {

void read_match(const Section& rule, MatchSpec& match);
void read_key(const Section& rule, std::vector<KeyPartSpec>& key);

}  // namespace popgate
