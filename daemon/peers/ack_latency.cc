// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/ack_latency.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace popgate {
namespace {

constexpr unsigned kSubBits = 3;
static_assert(kAckBucketsInOctave == 1U << kSubBits);

unsigned bucket_of(std::uint64_t us) {
  if (us < kAckBucketsInOctave) return static_cast<unsigned>(us);
  const auto octave = static_cast<unsigned>(std::bit_width(us)) - 1 - kSubBits;
  const auto within = static_cast<unsigned>(us >> octave) & (kAckBucketsInOctave - 1);
  return std::min((octave + 1) * kAckBucketsInOctave + within, kAckBuckets - 1);
}

// The largest value that falls in the bucket.
std::uint64_t upper_edge(unsigned bucket) {
  if (bucket < kAckBucketsInOctave) return bucket;
  const unsigned octave = bucket / kAckBucketsInOctave - 1;
  const std::uint64_t start = kAckBucketsInOctave + bucket % kAckBucketsInOctave;
  return ((start + 1) << octave) - 1;
}

}  // namespace

void AckLatency::sent(std::uint64_t sequence, HostInstant decided) {
  if (pending_.size() < kAckPendingMax) pending_.push_back({sequence, decided});
}

void AckLatency::acknowledged(std::uint64_t sequence, HostInstant now) {
  while (!pending_.empty() && pending_.front().sequence <= sequence) {
    add(now - pending_.front().decided);
    pending_.pop_front();
  }
}

void AckLatency::add(microseconds latency) {
  const microseconds positive = std::max(latency, microseconds(0));
  ++buckets_[bucket_of(static_cast<std::uint64_t>(positive.count()))];
  ++count_;
  max_ = std::max(max_, positive);
}

microseconds AckLatency::quantile(double share) const {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
  std::uint64_t below = 0;
  for (unsigned bucket = 0; bucket < kAckBuckets; ++bucket) {
    below += buckets_[bucket];
    if (below >= wanted && below > 0) return std::min(microseconds(upper_edge(bucket)), max_);
  }
  return microseconds(0);
}

}  // namespace popgate
