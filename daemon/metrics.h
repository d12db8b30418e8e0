// SPDX-License-Identifier: Apache-2.0
//
// How a stage tells its figures: it walks its own table of them for a visitor. The admin socket, the log at shutdown
// and the reference manual are visitors.
//
// A stage keeps plain integers in a struct of its own and describes each in one line beside them, so that a figure
// without a name, a unit and a meaning cannot exist.
//
// Threads: the event loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace popgate {

struct Metric {
  std::string_view name;     // popgate_<stage>_<noun>_<verb or state>, as Prometheus would have it
  std::string_view unit;     // "hits", "seconds", "" for a state
  std::string_view meaning;  // one sentence
  double value = 0;
  bool rises = true;            // a counter; false: a state that moves both ways
  std::string_view label_name;  // "" or one bounded label: rule, peer, shard
  std::string_view label_value;
};

using MetricVisitor = std::function<void(const Metric&)>;

}  // namespace popgate
