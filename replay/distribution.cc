// SPDX-License-Identifier: Apache-2.0
#include "replay/distribution.h"

#include <algorithm>
#include <cmath>

namespace popgate {

void Distribution::add(double value) {
  maximum_ = count_ == 0 ? value : std::max(maximum_, value);
  ++count_;
  sum_ += value;
  if (values_.size() >= kMeasurementsMax) return;
  values_.push_back(value);
  sorted_ = false;
}

double Distribution::quantile(double share) const {
  if (values_.empty()) return 0;
  if (!sorted_) std::sort(values_.begin(), values_.end());
  sorted_ = true;
  const double rank = std::ceil(share * static_cast<double>(values_.size()));
  const std::size_t index = rank < 1 ? 0 : static_cast<std::size_t>(rank) - 1;
  return values_[std::min(index, values_.size() - 1)];
}

}  // namespace popgate
