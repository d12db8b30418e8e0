// SPDX-License-Identifier: Apache-2.0
#include "daemon/ctl_explain.h"

#include "daemon/ctl_fields.h"
#include "daemon/ctl_table.h"
#include "daemon/ctl_text.h"
#include "daemon/ctl_views.h"
#include "daemon/duration.h"

namespace popgate {
namespace {

std::string verdict(const Fields& explanation, const ViewContext& context) {
  const std::string node = explanation.has("node") ? "node " + explanation.text("node") : "this node";
  if (!explanation.has("enforced")) return "NOT BLOCKED on " + node + ".\n";
  const Fields enforced = explanation.part("enforced");
  const std::string until = node + " until " + until_text(enforced, context);
  if (enforced.flag("log_only").value_or(false)) {
    return "NOT BLOCKED, only logged, on " + until + ": the rule's action is `log`.\n";
  }
  return "BLOCKED on " + until + (enforced.flag("by_operator").value_or(false) ? ", by an operator.\n" : ".\n");
}

std::string in_window(const Fields& explanation) {
  const auto window = explanation.duration("window_ms");
  return window ? " in " + duration_text(*window) : "";
}

std::string reason_text(const Fields& entry) {
  const std::string reason = entry.text("reason");
  return reason.empty() || reason == "-" ? "no reason was given" : "\"" + reason + "\"";
}

// What a decision went by when it was not the counters.
std::string under_text(const std::string& under) {
  if (under == "local") {
    return " Its counters could not be counted on: the node judged its own hits against its share (on_counter_failure: "
           "local).";
  }
  if (under == "closed") {
    return " Its counters could not be counted on, and the rule then blocks whoever comes (on_counter_failure: "
           "closed).";
  }
  return "";
}

std::string entry_sentence(const Fields& entry, const Fields& explanation, const ViewContext& context) {
  const std::string when = "on node " + entry.text("decided_by") + " at " + time_text(entry, "decided_at", context);
  const std::string kind = entry.text("kind");
  if (kind == "lift") {
    return "An operator " + when + " lifted it: " + reason_text(entry) + ". Hits before that do not count.";
  }
  std::string text;
  if (kind == "operator") {
    text = "An operator " + when + " blocked it: " + reason_text(entry) + ".";
  } else {
    const Fields evidence = entry.part("evidence");
    text = "Rule " + entry.text("rule") + " decided it " + when + ": " + bracket_text(evidence) + " hits" +
           in_window(explanation) + ", where " + evidence.digits("limit") + " pass." +
           under_text(evidence.text("under"));
  }
  text += " Until " + until_text(entry, context) + ".";
  if (entry.flag("enforced").value_or(true)) return text;
  return text +
         " Not enforced here: another entry stands above it, or this node has no such rule, or the rule has "
         "changed since.";
}

std::string entries_text(const Fields& explanation, const ViewContext& context) {
  std::string text;
  for (const Fields& entry : explanation.list("entries")) {
    text += "  - " + entry_sentence(entry, explanation, context) + "\n";
  }
  return text.empty() ? "" : "\nWhy:\n" + text;
}

// While the secret is changed, the client has a second key, and what blocks either blocks it.
std::string second_text(const Fields& explanation, const ViewContext& context) {
  if (!explanation.has("second")) return "";
  const Fields second = explanation.part("second");
  return "\nUnder the other hash secret, key " + second.text("key") + ": " + verdict(second, context) +
         entries_text(second, context);
}

std::string slots_table(const Fields& explanation, const ViewContext& context) {
  CtlTable table({{"SLOT", true}, {"FROM", true}, {"TO", true}, {"KNOWN", true}, {"UNSENT", true}, {"HIDDEN", true}});
  const auto time = [&](const Fields& slot, const char* name) {
    const auto instant = slot.time(name);
    return instant ? local_time(*instant, context.now) : std::string("-");
  };
  for (const Fields& slot : explanation.list("slots")) {
    table.add({slot.digits("slot"), time(slot, "from"), time(slot, "to"), slot.digits("known"), slot.digits("unsent"),
               slot.digits("hidden")});
  }
  return table.empty() ? "" : "\n" + table.text("  ");
}

// Which of the three figures the rule holds against its limit.
std::string policy_text(const Fields& explanation) {
  const std::string policy = explanation.text("policy");
  if (policy == "certain") return " The rule goes by what is certain: the least.";
  if (policy == "cautious") return " The rule goes by the most there can be.";
  return "";
}

std::string degraded_text(const Fields& explanation) {
  if (!explanation.flag("degraded").value_or(false)) return "";
  return " Its shard cannot be counted on now: other nodes' hits are not in this (on_counter_failure: " +
         explanation.text("on_counter_failure") + ").";
}

std::string counts_text(const Fields& explanation, const ViewContext& context) {
  if (!explanation.has("rate")) {
    return "\nWithout the rule's name this node cannot tell what it counts for the key: explain RULE VALUE... "
           "instead.\n";
  }
  if (explanation.list("slots").empty()) {
    return "\nThis node counts nothing for it now: nothing of it was seen here within the window.\n";
  }
  return "\nHits" + in_window(explanation) +
         ", as this node last read them: " + bracket_text(explanation.part("rate")) + "; " +
         explanation.digits("limit") + " pass." + policy_text(explanation) + degraded_text(explanation) + "\n" +
         slots_table(explanation, context);
}

std::string what_to_do(const Fields& explanation, const ViewContext& context) {
  std::string text;
  const auto lift_if_enforced = [&](const Fields& about) {
    if (about.has("enforced"))
      text += "\nTo end it on every node:    " + context.command + " lift " + about.text("key") + "\n";
  };
  lift_if_enforced(explanation);
  if (explanation.has("second")) lift_if_enforced(explanation.part("second"));
  if (!text.empty()) return text;
  return "\nTo block it on every node:  " + context.command + " block " + explanation.text("key") + " --for 10m\n";
}

}  // namespace

std::string explain_view(const Fields& explanation, const ViewContext& context) {
  std::string text = "Key " + explanation.text("key");
  text += explanation.has("rule") ? ", rule " + explanation.text("rule") + "\n\n" : "\n\n";
  return text + verdict(explanation, context) + entries_text(explanation, context) + counts_text(explanation, context) +
         second_text(explanation, context) + what_to_do(explanation, context);
}

}  // namespace popgate
