// SPDX-License-Identifier: Apache-2.0
#include "replay/report.h"

#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace popgate {
namespace {

using Json = nlohmann::ordered_json;

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

unsigned long long number(std::uint64_t value) { return value; }

// "12" or "0.5": the unit stands in the label.
std::string plain(double value) { return format("%.6g", value); }

std::string percent(double part) { return format("%.4f %%", part * 100); }

std::string line(const char* label, const std::string& value) { return format("  %-44s %s\n", label, value.c_str()); }

std::string count_line(const char* label, std::uint64_t value) { return line(label, format("%llu", number(value))); }

std::string of_line(const char* label, std::uint64_t value, std::uint64_t whole) {
  return line(label, format("%llu (%s)", number(value), percent(share(value, whole)).c_str()));
}

std::string quantiles(const Distribution& measured) {
  if (measured.count() == 0) return "none";
  return format("p50 %.6g, p99 %.6g, max %.6g (%llu)", measured.quantile(0.5), measured.quantile(0.99),
                measured.maximum(), number(measured.count()));
}

std::string error_line(const char* label, const Distribution& error) {
  if (error.count() == 0) return line(label, "none");
  return line(label, format("mean %s, p99 %s (%llu)", percent(error.mean()).c_str(),
                            percent(error.quantile(0.99)).c_str(), number(error.count())));
}

std::string by_node(const std::vector<std::uint64_t>& counts) {
  std::string text;
  for (const std::uint64_t count : counts) text += format("%s%llu", text.empty() ? "" : " ", number(count));
  return text;
}

std::string remark(const RuleReport& rule) {
  return (rule.policy == "estimate" ? "" : "  " + rule.policy) + (rule.log_only ? "  (log only)" : "");
}

std::string rules_table(const std::vector<RuleReport>& rules) {
  std::string table = format("\n%-20s %8s %8s %8s %9s %8s %6s %9s %6s %8s %6s %9s %8s %8s  %s\n", "rule", "limit",
                             "window", "mitigate", "hits", "clients", "over", "mitigated", "false", "crossed", "missed",
                             "blocked", "wrongly", "passed+", "overshoot p50/p99/max");
  for (const RuleReport& rule : rules) {
    table += format(
        "%-20.20s %8llu %6ss %7ss %9llu %8llu %6llu %9llu %6llu %8llu %6llu %9llu %8llu %8llu  %s/%s/%s%s\n",
        rule.name.c_str(), number(rule.limit), plain(rule.window_s).c_str(), plain(rule.mitigate_s).c_str(),
        number(rule.hits), number(rule.keys), number(rule.keys_over), number(rule.mitigations),
        number(rule.false_mitigations), number(rule.crossings), number(rule.missed_crossings), number(rule.blocked),
        number(rule.wrongly_blocked), number(rule.wrongly_passed), plain(rule.overshoot.quantile(0.5)).c_str(),
        plain(rule.overshoot.quantile(0.99)).c_str(), plain(rule.overshoot.maximum()).c_str(), remark(rule).c_str());
  }
  return table;
}

std::string live_lines(const LiveReport& live) {
  std::string lines = line("ran for, at speed-up", format("%.3g s, %.6g", live.seconds, live.speed_up));
  lines += line("requests sent later than planned, seconds", quantiles(live.send_delay_s));
  lines += line("library: hits recorded / dropped",
                format("%llu / %llu", number(live.hits_recorded), number(live.hits_dropped)));
  lines += count_line("library: checks without a daemon", live.checks_detached);
  if (live.not_sent > 0) lines += count_line("requests not sent (run ended early)", live.not_sent);
  return lines;
}

Json json_of(const Distribution& measured) {
  return {{"count", measured.count()},
          {"mean", measured.mean()},
          {"p50", measured.quantile(0.5)},
          {"p99", measured.quantile(0.99)},
          {"max", measured.maximum()}};
}

Json json_of(const RuleReport& rule) {
  return {{"name", rule.name},
          {"limit", rule.limit},
          {"window_s", rule.window_s},
          {"mitigate_s", rule.mitigate_s},
          {"action", rule.log_only ? "log" : "block"},
          {"policy", rule.policy},
          {"hits", rule.hits},
          {"clients", rule.keys},
          {"clients_over", rule.keys_over},
          {"clients_mitigated", rule.keys_mitigated},
          {"mitigations", rule.mitigations},
          {"false_mitigations", rule.false_mitigations},
          {"crossings", rule.crossings},
          {"missed_crossings", rule.missed_crossings},
          {"blocked", rule.blocked},
          {"wrongly_blocked", rule.wrongly_blocked},
          {"wrongly_passed", rule.wrongly_passed},
          {"overshoot", json_of(rule.overshoot)}};
}

}  // namespace

double Report::wrong_share() const { return share(wrongly_blocked + wrongly_passed, requests); }

double Report::ideal_difference_share() const {
  return share(passed_but_ideal_blocks + blocked_but_ideal_passes, requests);
}

std::string report_table(const Report& r) {
  std::string table = format("%s replay on %llu node%s\n", r.mode.c_str(), number(r.nodes), r.nodes == 1 ? "" : "s");
  table += count_line("requests", r.requests);
  table += of_line("of these under a rule", r.requests_matched, r.requests);
  table += count_line("hits recorded", r.hits);
  table += of_line("requests blocked", r.blocked, r.requests);
  table += of_line("  wrongly blocked", r.wrongly_blocked, r.requests);
  table += of_line("  wrongly passed", r.wrongly_passed, r.requests);
  table += line("wrong decisions of all", percent(r.wrong_share()));
  table += of_line("clients blocked", r.clients_blocked, r.clients);
  table += line("  clients blocked, node by node", by_node(r.clients_blocked_by_node));
  table += line("  requests blocked, node by node", by_node(r.requests_blocked_by_node));
  table += line("crossing to decision, seconds", quantiles(r.time_to_decision_s));
  table += line("crossing to enforced on every node, seconds", quantiles(r.time_to_enforced_s));
  table += count_line("  crossings never enforced on every node", r.crossings_not_enforced_everywhere);
  if (r.judgements > 0) {
    table += error_line("estimate against exact, at decisions", r.estimate_error_at_decisions);
    table += error_line("estimate against exact, at judgements", r.estimate_error_at_judgements);
    table += of_line("lower bound above exact (must be 0)", r.lo_above_exact, r.judgements);
  }
  if (r.ledger.recorded > 0) {
    table += line("hits delivered / dropped / expired", format("%llu / %llu / %llu", number(r.ledger.delivered),
                                                               number(r.ledger.dropped), number(r.ledger.expired)));
  }
  table += of_line("an ideal limiter would have blocked", r.ideal_blocked, r.requests);
  table += count_line("  passed where it blocks", r.passed_but_ideal_blocks);
  table += count_line("  blocked where it passes", r.blocked_but_ideal_passes);
  if (r.mode == "live") table += live_lines(r.live);
  return table + rules_table(r.rules);
}

std::string report_json(const Report& r) {
  Json object = {{"mode", r.mode},
                 {"nodes", r.nodes},
                 {"requests", r.requests},
                 {"requests_matched", r.requests_matched},
                 {"hits", r.hits},
                 {"clients", r.clients},
                 {"clients_blocked", r.clients_blocked},
                 {"clients_blocked_by_node", r.clients_blocked_by_node},
                 {"requests_blocked", r.blocked},
                 {"requests_blocked_by_node", r.requests_blocked_by_node},
                 {"wrongly_blocked", r.wrongly_blocked},
                 {"wrongly_passed", r.wrongly_passed},
                 {"wrong_share", r.wrong_share()},
                 {"ideal_blocked", r.ideal_blocked},
                 {"passed_but_ideal_blocks", r.passed_but_ideal_blocks},
                 {"blocked_but_ideal_passes", r.blocked_but_ideal_passes},
                 {"ideal_difference_share", r.ideal_difference_share()},
                 {"judgements", r.judgements},
                 {"lo_above_exact", r.lo_above_exact},
                 {"estimate_error_at_decisions", json_of(r.estimate_error_at_decisions)},
                 {"estimate_error_at_judgements", json_of(r.estimate_error_at_judgements)},
                 {"time_to_decision_s", json_of(r.time_to_decision_s)},
                 {"time_to_enforced_s", json_of(r.time_to_enforced_s)},
                 {"crossings_not_enforced_everywhere", r.crossings_not_enforced_everywhere}};
  if (r.ledger.recorded > 0) {
    object["ledger"] = {{"recorded", r.ledger.recorded},
                        {"delivered", r.ledger.delivered},
                        {"dropped", r.ledger.dropped},
                        {"expired", r.ledger.expired}};
  }
  if (r.mode == "live") {
    object["live"] = {{"speed_up", r.live.speed_up},
                      {"seconds", r.live.seconds},
                      {"send_delay_s", json_of(r.live.send_delay_s)},
                      {"not_sent", r.live.not_sent},
                      {"hits_recorded", r.live.hits_recorded},
                      {"hits_dropped", r.live.hits_dropped},
                      {"checks_detached", r.live.checks_detached},
                      {"interrupted", r.live.interrupted}};
  }
  object["rules"] = Json::array();
  for (const RuleReport& rule : r.rules) object["rules"].push_back(json_of(rule));
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace popgate
