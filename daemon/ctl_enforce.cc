// SPDX-License-Identifier: Apache-2.0
#include "daemon/ctl_enforce.h"

#include "daemon/ctl_fields.h"
#include "daemon/ctl_table.h"
#include "daemon/ctl_text.h"

namespace popgate {
namespace {

std::string peers_text(const Fields& answer) {
  std::size_t knowing = 0;
  std::string others;
  const auto peers = answer.list("peers");
  for (const Fields& peer : peers) {
    const bool equal = peer.flag("equal").value_or(false);
    if (equal) ++knowing;
    if (!equal) others += (others.empty() ? "" : ", ") + peer.text("node") + (peer.flag("equal") ? "" : " (not heard)");
  }
  if (peers.empty()) return "";
  const std::string count = std::to_string(knowing) + " of " + std::to_string(peers.size());
  if (others.empty()) return "All " + std::to_string(peers.size()) + " peers know the PoP's orders.\n";
  return count + " peers are known to have the PoP's orders; ask again about: " + others + "\n";
}

}  // namespace

std::string enforce_view(const Fields& answer, const ViewContext& context) {
  const bool any_off = answer.flag("any_off").value_or(false);
  std::string text = "This node blocks what it decides.\n";
  if (any_off) text = "This node blocks, but for the rules that are OFF below.\n";
  if (!answer.flag("blocking").value_or(true))
    text = "BLOCKING IS OFF: this node blocks nobody; it goes on counting.\n";
  CtlTable table(
      {{"WHAT"}, {"WHERE"}, {"BLOCKING"}, {"SINCE (" + local_zone(context.now) + ")", true}, {"BY"}, {"REASON"}});
  bool untold = false;
  for (const Fields& order : answer.list("orders")) {
    const auto since = order.time("ordered_at");
    const std::string origin = order.text("origin");
    untold = untold || !order.flag("told").value_or(true);
    table.add({order.has("rule") ? order.text("rule") : "everything",
               order.text("scope") == "pop" ? "PoP" : "this node", order.flag("off").value_or(false) ? "OFF" : "on",
               since ? local_time(*since, context.now) : "-",
               order.text("ordered_by") + (origin == "operator" ? "" : " (" + origin + ")"), order.text("reason")});
  }
  if (!table.empty()) text += "\n" + table.text();
  if (untold) text += "This node has not heard a peer since it started: it tells its orders for the PoP when it has.\n";
  text += peers_text(answer);
  if (!answer.flag("written").value_or(true)) {
    text += "The last order is not written to state_dir: until it is (it is tried again), a reboot would forget it.\n";
  }
  return text;
}

std::string enforcement_text(const Fields& enforcement) {
  if (!enforcement.flag("any_off").value_or(false)) return "";
  if (!enforcement.flag("blocking").value_or(true)) return "BLOCKING IS OFF: nobody is blocked (popgatectl enforce)";
  return "OFF for " + enforcement.digits("rules_off") + " rule(s) (popgatectl enforce)";
}

}  // namespace popgate
