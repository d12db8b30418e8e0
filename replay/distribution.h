// SPDX-License-Identifier: Apache-2.0
//
// A set of measurements and its quantiles, by nearest rank: the p-quantile is the smallest measurement that at least
// the share p of them do not exceed. It is always a value that was measured.
//
// Threads: one thread.
// Limits: the first kMeasurementsMax are kept; quantiles are those of the kept ones, count, mean and maximum of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace popgate {

inline constexpr std::size_t kMeasurementsMax = std::size_t{1} << 22;

class Distribution {
 public:
  void add(double value);
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  [[nodiscard]] double maximum() const { return maximum_; }
  /// 0 without measurements; `share` from 0 to 1.
  [[nodiscard]] double quantile(double share) const;

 private:
  mutable std::vector<double> values_;
  mutable bool sorted_ = true;
  std::uint64_t count_ = 0;
  double sum_ = 0;
  double maximum_ = 0;
};

}  // namespace popgate
