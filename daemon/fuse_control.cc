// SPDX-License-Identifier: Apache-2.0
#include "daemon/fuse_control.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "daemon/peers/mesh.h"

namespace popgate {

void FuseControl::take(const RequestTotals& totals) {
  own_.requests = totals.requests;
  own_.would_block.clear();
  for (const Rule* rule : setup_.rules->fused()) {
    const auto found = totals.would_block.find(rule->number);
    own_.would_block[rule->id] = found == totals.would_block.end() ? 0 : found->second;
  }
}

void FuseControl::describe(wire::NodeFigures& figures) const {
  figures.requests = own_.requests;
  for (const auto& [rule, blocked] : own_.would_block) figures.rules.push_back({rule, blocked});
}

void FuseControl::hear_peers(HostInstant now) {
  for (const PeerStatus& peer : mesh_->status().peers) {
    const bool is_new = peer.heard && peer.figures && peer.last_heard && now - *peer.last_heard <= kFuseHeardWithin;
    if (!is_new) continue;
    RequestFigures figures{peer.figures->requests, {}};
    for (const wire::RuleFigures& rule : peer.figures->rules) figures.would_block[rule.rule] = rule.would_block;
    fuse_.hear(node_id(peer.name), peer.incarnation, figures, now);
  }
}

std::vector<Fuse::Rated> FuseControl::rated() const {
  std::vector<Fuse::Rated> rated;
  for (const Rule* rule : setup_.rules->fused()) {
    rated.push_back({rule->id, static_cast<double>(*rule->max_blocked_share) / 100});
  }
  return rated;
}

void FuseControl::tick() {
  const HostInstant now = setup_.reactor.host_now();
  fuse_.hear(0, 0, own_, now);
  std::vector<Fuse::Member> peers;
  if (mesh_ != nullptr) {
    hear_peers(now);
    for (const PeerStatus& peer : mesh_->status().peers) peers.push_back({node_id(peer.name), peer.said_goodbye});
  }
  judged_ = fuse_.judge(rated(), peers, now);
  for (const Fuse::Share& share : judged_.shares) {
    if (share.blown && !setup_.brakes.brakes().is_off_by_itself(share.rule)) blow(share, judged_.for_pop);
  }
}

void FuseControl::blow(const Fuse::Share& share, bool for_pop) {
  const Rule* rule = setup_.rules->by_id(share.rule);
  const std::string reason =
      fmt::format("fuse: it blocked {:.1f} % of {} requests in {} s, max_blocked_share is {} %", share.share * 100,
                  share.requests, kFuseWindow.count(), *rule->max_blocked_share);
  const Status ordered = setup_.brakes.order({.side = for_pop ? BrakeSide::kPop : BrakeSide::kNode,
                                              .rule = share.rule,
                                              .off = true,
                                              .origin = BrakeOrigin::kFuse,
                                              .reason = reason});
  if (ordered) {
    ++blown_;
  } else if (refused_log_.allow(setup_.reactor.host_now())) {
    spdlog::error("the fuse of rule {} has blown and cannot turn it off: {}{}", rule->name, ordered.error(),
                  refused_log_.withheld_text());
  }
}

void FuseControl::visit(const MetricVisitor& visitor) const {
  visitor({"popgate_fuse_blown_total", "rules", "Rules that this node turned off because they blocked too much",
           static_cast<double>(blown_), true, "", ""});
  visitor({"popgate_fuse_judged", "", "1 while there are requests and nodes enough to judge fuses for the PoP",
           judged_.for_pop && !judged_.shares.empty() ? 1.0 : 0.0, false, "", ""});
  for (const Fuse::Share& share : judged_.shares) {
    const Rule* rule = setup_.rules->by_id(share.rule);
    if (rule == nullptr) continue;
    visitor({"popgate_fuse_share_ratio", "",
             "Share of the PoP's requests that a rule with a fuse blocks or would block", share.share, false, "rule",
             rule->name});
  }
}

}  // namespace popgate
