// SPDX-License-Identifier: Apache-2.0
//
// Figures as the Prometheus text format (0.0.4): a visitor that collects and then writes.
//
// It collects first, because the format wants all samples of a name together, while stages walk their figures shard by
// shard and peer by peer.
//
// Threads: a value.
// Invariants: 1. HELP and TYPE stand once a name, before its samples; the first visit of a name decides them.
// Limits: as many samples as the stages have; each label is bounded by its stage.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/metrics.h"

namespace popgate {

/// The name under which a figure is exported, by one convention whatever its stage calls it: noun, then unit when that
/// is seconds or bytes, then `_total` when it only rises. popgate_peers_sent (bytes, rises) is
/// popgate_peers_sent_bytes_total.
[[nodiscard]] std::string exported_name(const Metric& metric);
/// Why an exported name breaks the convention; empty when it does not.
[[nodiscard]] std::string name_fault(std::string_view name, bool rises);

class PrometheusText {
 public:
  PrometheusText() = default;
  PrometheusText(const PrometheusText&) = delete;  // its visitor refers to it
  PrometheusText& operator=(const PrometheusText&) = delete;

  /// Valid as long as this object.
  [[nodiscard]] MetricVisitor visitor();
  /// Families in the order of their first visit.
  [[nodiscard]] std::string text() const;

 private:
  struct Family {
    std::string head;  // HELP and TYPE
    std::string samples;
  };

  void add(const Metric& metric);

  std::vector<Family> families_;
  std::map<std::string, std::size_t, std::less<>> index_;  // name -> place in families_
};

}  // namespace popgate
