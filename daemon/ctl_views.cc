// SPDX-License-Identifier: Apache-2.0
#include "daemon/ctl_views.h"

#include "daemon/certificate_name.h"
#include "daemon/ctl_enforce.h"
#include "daemon/ctl_fields.h"
#include "daemon/ctl_table.h"
#include "daemon/ctl_text.h"
#include "daemon/duration.h"

namespace popgate {
namespace {

std::string joined(const std::vector<std::string>& texts, const std::string& separator) {
  std::string all;
  for (const std::string& text : texts) all.append(all.empty() ? "" : separator).append(text);
  return all;
}

std::string duration_or_dash(const Fields& fields, const char* name) {
  const auto duration = fields.duration(name);
  return duration ? duration_text(*duration) : "-";
}

std::string percent(const Fields& fields, const char* name) {
  const auto share = fields.number(name);
  // Cut, not rounded: 100 % must mean all.
  return share ? number_digits(static_cast<double>(static_cast<std::int64_t>(*share * 1000)) / 10) + " %" : "-";
}

std::string yes_or(const Fields& fields, const char* name, const char* yes, const char* no) {
  const auto flag = fields.flag(name);
  return flag ? (*flag ? yes : no) : "-";
}

std::string counters_text(const Fields& counters) {
  if (counters.text("kind") == "memory") return "in this daemon's memory (a PoP of one node)";
  std::size_t reachable = 0;
  const auto shards = counters.list("shards");
  for (const Fields& shard : shards) reachable += shard.flag("reachable").value_or(false) ? 1 : 0;
  std::string text = counters.text("kind") + ", " + std::to_string(reachable) + " of " + std::to_string(shards.size()) +
                     " shards reachable";
  if (counters.has("ring")) text += ", ring " + counters.text("ring");
  if (counters.has("also_read")) text += ", also read: ring " + counters.part("also_read").text("ring");
  return text;
}

std::string mesh_text(const Fields& status) {
  if (!status.has("mesh")) return "none (a PoP of one node)";
  const Fields mesh = status.part("mesh");
  return mesh.digits("connected") + " of " + mesh.digits("peers") + " peers connected, coverage " +
         percent(mesh, "coverage") + ", listening on " + mesh.text("listen");
}

std::string certificate_text(const Fields& status, const ViewContext& context) {
  if (!status.has("mesh")) return "";
  const Fields mesh = status.part("mesh");
  if (!mesh.has("certificate")) return "";
  const Fields certificate = mesh.part("certificate");
  const auto left = certificate.duration("left_ms");
  const std::string end = left && left->count() < 0 ? "EXPIRED" : left ? remaining_text(*left) + " left" : "?";
  const std::string alarm = certificate.text("alarm");
  const std::string line = "  certificate  " + certificate.text("name") + ", valid until " +
                           time_text(certificate, "valid_until", context) + ", " + end + "\n";
  return alarm.empty() ? line : line + "  ! " + alarm + "\n";
}

std::string shards_table(const Fields& status) {
  CtlTable table({{"SHARD"}, {"ADDRESS"}, {"STATE"}});
  for (const Fields& shard : status.part("counters").list("shards")) {
    const bool degraded = shard.flag("degraded").value_or(false);
    table.add({shard.text("name"), shard.text("address"),
               yes_or(shard, "reachable", "reachable", "NOT REACHABLE") + (degraded ? ", DEGRADED" : "")});
  }
  return table.empty() ? "" : "\n" + table.text();
}

std::string workers_table(const Fields& status) {
  CtlTable table({{"WORKER"},
                  {"PID", true},
                  {"UID", true},
                  {"STATE"},
                  {"WAITING", true},
                  {"DRAINED", true},
                  {"DROPPED", true},
                  {"REJECTED", true}});
  for (const Fields& worker : status.list("workers")) {
    table.add({worker.text("name"), worker.digits("pid"), worker.digits("uid"),
               yes_or(worker, "leaving", "leaving", "attached"), worker.digits("waiting"), worker.digits("drained"),
               worker.digits("dropped"), worker.digits("rejected")});
  }
  return table.empty() ? "\nNo worker is attached: nothing asks this node about its clients.\n" : "\n" + table.text();
}

/// Until a peer's certificate ends; marked in the last two weeks.
std::string certificate_left_text(const Fields& peer) {
  const auto left = peer.part("certificate").duration("left_ms");
  if (!left) return "-";
  if (left->count() <= 0) return "EXPIRED";
  return remaining_text(*left) + (*left < kCertificateWarning ? " !" : "");
}

std::string enforced_text(const Fields& peer) {
  if (!peer.has("enforced_ms")) return "-";
  const Fields times = peer.part("enforced_ms");
  return times.digits("p50") + "/" + times.digits("p99") + "/" + times.digits("max") + "ms";
}

std::vector<std::string> rule_row(const Fields& rule, std::string name) {
  const auto mitigate = rule.duration("mitigate_ms");
  const Fields hits = rule.part("hits");
  return {std::move(name),
          rule.digits("limit"),
          duration_or_dash(rule, "window_ms"),
          mitigate && mitigate->count() == 0 ? "throttle" : duration_or_dash(rule, "mitigate_ms"),
          rule.flag("enabled").value_or(true) ? rule.text("action") : "DISABLED",
          rule.text("count"),
          rule.text("policy"),
          rule.digits("enforced"),
          hits.digits("recorded"),
          hits.digits("delivered"),
          hits.digits("uncertain"),
          hits.digits("dropped"),
          hits.digits("expired"),
          hits.digits("lost"),
          hits.digits("pending")};
}

std::string evidence_text(const Fields& entry) {
  if (entry.text("kind") != "automatic") return "-";
  const Fields evidence = entry.part("evidence");
  const std::string under = evidence.text("under");
  const bool labelled = under == "local" || under == "closed";
  return evidence.digits("estimate") + " of " + evidence.digits("limit") + (labelled ? " (" + under + ")" : "");
}

// While the secret is changed, an identity has a key under each.
std::vector<std::string> keys_of(const Fields& answer) {
  std::vector<std::string> keys = answer.texts("keys");
  if (keys.empty()) keys.push_back(answer.text("key"));
  return keys;
}

std::string keys_text(const Fields& answer) { return joined(keys_of(answer), " and "); }

// "<id> (counted), <id> (checked only)": the first is what new keys are made under.
std::string secrets_text(const Fields& fields) {
  std::vector<std::string> names;
  const auto secrets = fields.list("secrets");
  for (const Fields& secret : secrets) {
    const bool counted = secret.flag("counted").value_or(true);
    names.push_back(secret.text("id") + (secrets.size() < 2 ? "" : counted ? " (counted)" : " (checked only)"));
  }
  return names.empty() ? "-" : joined(names, ", ");
}

/// What is amiss with mitigations though the node is ready; of an older daemon nothing is known.
std::string mitigation_alarms(const Fields& mitigations) {
  const double no_room = mitigations.number("no_room").value_or(0);
  const double not_recorded = mitigations.number("not_recorded").value_or(0);
  std::string text;
  if (no_room > 0) text += "  ! " + number_digits(no_room) + " mitigations find no room in this node's table\n";
  if (not_recorded > 0) {
    text += "  ! " + number_digits(not_recorded) + " mitigations are not recorded: a restart now would forget them\n";
  }
  return text;
}

}  // namespace

std::string time_text(const Fields& fields, const char* name, const ViewContext& context) {
  const auto time = fields.time(name);
  return time ? local_time(*time, context.now) + " " + local_zone(context.now) : "-";
}

std::string until_text(const Fields& fields, const ViewContext& context) {
  const auto remaining = fields.duration("remaining_ms");
  std::string text = time_text(fields, "until", context);
  return remaining ? text + " (" + remaining_text(*remaining) + " from now)" : text;
}

std::string bracket_text(const Fields& rate) {
  const std::string most = rate.has("hi") ? ", at most " + rate.digits("hi") : "; how many at most is not known";
  return "about " + rate.digits("estimate") + " (at least " + rate.digits("lo") + most + ")";
}

std::string status_view(const Fields& status, const ViewContext& context) {
  const bool ready = status.flag("ready").value_or(false);
  std::string text = "popgated " + status.text("version") + ", node " + status.text("node") + " of PoP " +
                     status.text("pop") + ": " + (ready ? "ready" : "NOT READY") + "\n";
  for (const std::string& reason : status.texts("not_ready")) text += "  ! " + reason + "\n";
  const std::string off = enforcement_text(status.part("enforcement"));
  if (!off.empty()) text += "  ! " + off + "\n";
  text += mitigation_alarms(status.part("mitigations"));
  std::string age;
  if (const auto started = status.time("started_at")) {
    age = ", " + remaining_text(std::chrono::floor<milliseconds>(context.now - *started)) + " ago";
  }
  const Fields rules = status.part("rules");
  const Fields mitigations = status.part("mitigations");
  text += "  started      " + time_text(status, "started_at", context) + age + ", pid " + status.digits("pid") + "\n";
  text += "  rules        " + rules.digits("count") + ", revision " + rules.text("revision") + "\n";
  text += "  mitigations  " + mitigations.digits("enforced") + " enforced, room for " + mitigations.digits("capacity") +
          "\n";
  text += "  counters     " + counters_text(status.part("counters")) + "\n";
  text += "  secrets      " + secrets_text(status) + "\n";
  text += "  mesh         " + mesh_text(status) + "\n";
  text += certificate_text(status, context);
  return text + shards_table(status) + workers_table(status);
}

std::string peers_view(const Fields& peers, const ViewContext& /*context*/) {
  const auto list = peers.list("peers");
  if (list.empty()) return "This node has no peers: it is a PoP of one node.\n";
  CtlTable table({{"NODE"},
                  {"ADDRESS"},
                  {"STATE"},
                  {"FOR", true},
                  {"HEARD"},
                  {"UNACKED", true},
                  {"SKEW", true},
                  {"RTT", true},
                  {"ENTRIES"},
                  {"RULES"},
                  {"MEMBERS"},
                  {"BRAKES"},
                  {"NO ROOM", true},
                  {"SECRETS"},
                  {"CERTIFICATE"},
                  {"ENFORCED p50/p99/max"},
                  {"FRAMES", true},
                  {"BYTES", true},
                  {"LAST ERROR"}});
  for (const Fields& peer : list) {
    const auto with_unit = [&](const char* name) { return peer.has(name) ? peer.digits(name) + "ms" : "-"; };
    const auto since = peer.duration("since_ms");
    const bool stopped = peer.flag("said_goodbye").value_or(false);
    table.add({peer.text("node"), peer.text("address"), peer.text("state") + (stopped ? ", stopped in order" : ""),
               since ? remaining_text(*since) : "-", yes_or(peer, "heard", "yes", "NO"), peer.digits("unacknowledged"),
               with_unit("skew_ms"), with_unit("round_trip_ms"), yes_or(peer, "digest_equal", "equal", "DIFFER"),
               yes_or(peer, "rules_equal", "equal", "DIFFER"), yes_or(peer, "members_equal", "equal", "DIFFER"),
               yes_or(peer, "brakes_equal", "equal", "DIFFER"),
               peer.has("not_enforced") ? peer.digits("not_enforced") : "-",
               secrets_text(peer) + (peer.flag("counts_alike").value_or(true) ? "" : " COUNTED APART"),
               certificate_left_text(peer), enforced_text(peer), peer.digits("frames_sent"), peer.digits("bytes_sent"),
               peer.text("last_error")});
  }
  return percent(peers, "coverage") + " of the peers have acknowledged everything.\n\n" + table.text();
}

std::string rules_view(const Fields& rules, const ViewContext& /*context*/) {
  CtlTable table({{"RULE"},
                  {"LIMIT", true},
                  {"WINDOW", true},
                  {"MITIGATE", true},
                  {"ACTION"},
                  {"COUNT"},
                  {"POLICY"},
                  {"ENFORCED", true},
                  {"RECORDED", true},
                  {"DELIVERED", true},
                  {"UNCERTAIN", true},
                  {"DROPPED", true},
                  {"EXPIRED", true},
                  {"LOST", true},
                  {"PENDING", true}});
  for (const Fields& rule : rules.list("rules")) table.add(rule_row(rule, rule.text("name")));
  const auto former = rules.list("former_rules");
  for (const Fields& rule : former) table.add(rule_row(rule, "(gone) " + rule.text(rule.has("name") ? "name" : "id")));
  if (table.empty()) return "There are no rules: nothing is counted.\n";
  return table.text();
}

std::string mitigations_view(const Fields& mitigations, const ViewContext& context) {
  const auto entries = mitigations.list("mitigations");
  CtlTable table({{"KEY"},
                  {"RULE"},
                  {"KIND"},
                  {"REMAINING", true},
                  {"UNTIL (" + local_zone(context.now) + ")", true},
                  {"BY"},
                  {"HITS", true},
                  {"HERE"},
                  {"REASON"}});
  for (const Fields& entry : entries) {
    const auto remaining = entry.duration("remaining_ms");
    const auto until = entry.time("until");
    table.add({entry.text("key"), entry.text("rule"), entry.text("kind"), remaining ? remaining_text(*remaining) : "-",
               until ? local_time(*until, context.now) : "-", entry.text("decided_by"), evidence_text(entry),
               entry.flag("off").value_or(false) ? "OFF" : yes_or(entry, "enforced", "enforced", "no"),
               entry.text("reason")});
  }
  const std::uint64_t next = context.offset + entries.size();
  const double total = mitigations.number("total").value_or(static_cast<double>(next));
  if (table.empty()) return total > 0 ? "None from here on, of " + number_digits(total) + ".\n" : "None.\n";
  const std::string off = enforcement_text(mitigations.part("enforcement"));
  std::string text = (off.empty() ? "" : off + "\n\n") + table.text();
  if (total > static_cast<double>(next)) {
    text += "\n" + std::to_string(entries.size()) + " of " + number_digits(total) + " shown; --offset " +
            std::to_string(next) + " shows the next ones.\n";
  }
  return text;
}

std::string block_view(const Fields& answer, const ViewContext& context) {
  std::string text =
      "Blocked key " + keys_text(answer) + " on every node until " + time_text(answer, "until", context) + ".\n";
  for (const std::string& key : keys_of(answer)) {
    text += "To end it earlier:  " + context.command + " lift " + key + "\n";
  }
  return text;
}

std::string lift_view(const Fields& answer, const ViewContext& /*context*/) {
  return "Lifted key " + keys_text(answer) + " on every node; its hits up to now no longer count.\n";
}

std::string reload_view(const Fields& answer, const ViewContext& /*context*/) {
  std::string text = "Reloaded: " + answer.digits("rules") + " rules, revision " + answer.text("revision") + ".\n";
  const auto restart = answer.texts("needs_restart");
  if (!restart.empty()) {
    text += "These have changed too and take effect when popgated is restarted: " + joined(restart, ", ") + ".\n";
  }
  return text;
}

std::string ring_check_view(const Fields& answer, const ViewContext& /*context*/) {
  const bool through_proxy = answer.flag("through_proxy").value_or(false);
  CtlTable table({{"SHARD"}, {"AGREEING", true}, {"DIFFERING", true}, {"UNREACHABLE", true}, {"FAULT"}});
  bool differs = false;
  for (const Fields& shard : answer.list("shards")) {
    differs = differs || shard.number("differing").value_or(1) > 0;
    table.add({shard.text("name"), shard.digits("agreeing"), shard.digits("differing"), shard.digits("unreachable"),
               shard.text("fault")});
  }
  std::string text = "Probe keys written " +
                     std::string(through_proxy ? "through twemproxy" : "straight to the shards") +
                     " and read where libmemcached places them:\n\n" + table.text() + "\n";
  if (ring_agrees(answer)) return text + "They agree: every node counts a key on the same shard.\n";
  if (!differs) {
    return text +
           "NOT KNOWN for every shard: some cannot be written or read. No key was found in a wrong place; look at " +
           "these shards, then ask again.\n";
  }
  return text + "THEY DO NOT AGREE: while keys differ, counts are split or lost." +
         (through_proxy ? " Make nutcracker.yml anew with popgated --print-nutcracker and restart nutcracker.\n"
                        : "\n");
}

bool ring_agrees(const Fields& answer) { return answer.flag("agrees").value_or(false); }

}  // namespace popgate
