// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/fuse.h"

#include <algorithm>

namespace popgate {
namespace {

bool fell(const RequestFigures& before, const RequestFigures& after) {
  if (after.requests < before.requests) return true;
  return std::ranges::any_of(before.would_block, [&](const auto& one) {
    const auto found = after.would_block.find(one.first);
    return found != after.would_block.end() && found->second < one.second;
  });
}

// A rule that the earlier sample does not have has counted from 0.
RequestFigures difference(const RequestFigures& before, const RequestFigures& after) {
  RequestFigures result{after.requests - before.requests, {}};
  for (const auto& [rule, blocked] : after.would_block) {
    const auto found = before.would_block.find(rule);
    // More than there were requests is no truth about requests.
    const std::uint64_t earlier = found == before.would_block.end() ? 0 : found->second;
    const std::uint64_t since = blocked >= earlier ? blocked - earlier : 0;
    result.would_block[rule] = std::min(since, result.requests);
  }
  return result;
}

}  // namespace

void FuseSamples::add(std::uint64_t incarnation, const RequestFigures& figures, HostInstant now) {
  if (incarnation != incarnation_ || fell(latest_, figures)) samples_.clear();
  incarnation_ = incarnation;
  latest_ = figures;
  heard_ = now;
  if (samples_.empty() || now - samples_.back().at >= kFuseSampleEvery) samples_.push_back({now, figures});
  while (samples_.size() > 1 && (samples_[1].at + kFuseWindow <= now || samples_.size() > kFuseSamplesMax)) {
    samples_.pop_front();
  }
  // After a long silence the first sample is too old to speak of the last window.
  if (samples_.front().at + 2 * kFuseWindow < now) samples_.pop_front();
  if (const auto whole = window(now)) {
    last_requests_ = whole->requests;
    last_whole_ = now;
  }
}

std::optional<RequestFigures> FuseSamples::window(HostInstant now) const {
  if (samples_.empty() || samples_.front().at + kFuseWindow > now) return std::nullopt;
  return difference(samples_.front().figures, latest_);
}

std::uint64_t FuseSamples::last_requests(HostInstant now) const {
  return last_whole_ && now - *last_whole_ <= kFuseLostFor ? last_requests_ : 0;
}

void Fuse::hear(NodeId node, std::uint64_t incarnation, const RequestFigures& figures, HostInstant now) {
  nodes_[node].add(incarnation, figures, now);
}

std::optional<Fuse::Sum> Fuse::add_up(const std::vector<Member>& peers, HostInstant now) const {
  const auto own = nodes_.find(0);
  const auto own_window = own == nodes_.end() ? std::nullopt : own->second.window(now);
  if (!own_window) return std::nullopt;
  Sum sum{*own_window, 1};
  for (const Member& peer : peers) {
    const auto found = nodes_.find(peer.node);
    if (found == nodes_.end() || peer.said_goodbye) continue;
    const auto whole = found->second.is_heard(now) ? found->second.window(now) : std::nullopt;
    if (!whole) {
      sum.figures.requests += found->second.last_requests(now);
      continue;
    }
    ++sum.heard;
    sum.figures.requests += whole->requests;
    for (const auto& [rule, blocked] : whole->would_block) sum.figures.would_block[rule] += blocked;
  }
  return sum;
}

Fuse::Judged Fuse::judge(const std::vector<Rated>& rules, const std::vector<Member>& peers, HostInstant now) {
  std::erase_if(reset_at_, [&](const auto& one) { return one.second + kFuseWindow <= now; });
  const auto sum = add_up(peers, now);
  if (!sum) return {};
  const auto gone = std::ranges::count_if(peers, &Member::said_goodbye);
  const std::size_t members = peers.size() + 1 - static_cast<std::size_t>(gone);
  Judged judged{.for_pop = 2 * sum->heard > members, .shares = {}};
  if (sum->figures.requests < kFuseRequestsMin) return judged;
  for (const Rated& rule : rules) {
    const auto found = sum->figures.would_block.find(rule.rule);
    const std::uint64_t blocked = found == sum->figures.would_block.end() ? 0 : found->second;
    const double share = static_cast<double>(blocked) / static_cast<double>(sum->figures.requests);
    const bool blown = share > rule.max_share && !reset_at_.contains(rule.rule);
    judged.shares.push_back({rule.rule, share, sum->figures.requests, blown});
  }
  return judged;
}

}  // namespace popgate
