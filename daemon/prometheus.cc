// SPDX-License-Identifier: Apache-2.0
#include "daemon/prometheus.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "daemon/result.h"

namespace popgate {
namespace {

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

// `quoted`: inside double quotes, which then need an escape too.
std::string escaped(std::string_view text, bool quoted) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\\' || (quoted && c == '"')) {
      out.append({'\\', c});
    } else {
      out.push_back(c);
    }
  }
  return out;
}

// The shortest digits that read back as the same number.
std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

std::string head_of(const std::string& name, const Metric& metric) {
  std::string head = "# HELP ";
  head.append(name).append(" ").append(escaped(metric.meaning, false));
  if (!metric.unit.empty()) head.append(" (").append(escaped(metric.unit, false)).append(")");
  head.append("\n# TYPE ").append(name).append(metric.rises ? " counter\n" : " gauge\n");
  return head;
}

constexpr std::string_view kTotal = "_total";

}  // namespace

std::string exported_name(const Metric& metric) {
  std::string name(metric.name);
  if (metric.rises && name.ends_with(kTotal)) name.resize(name.size() - kTotal.size());
  if (metric.unit == "seconds" || metric.unit == "bytes") {
    const std::string unit = "_" + std::string(metric.unit);
    if (!name.ends_with(unit)) name += unit;
  }
  return metric.rises ? name.append(kTotal) : name;
}

std::string name_fault(std::string_view name, bool rises) {
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  if (!name.starts_with("popgate_") || !std::all_of(name.begin(), name.end(), allowed)) {
    return "allowed: popgate_ and lower-case letters, digits, underscores";
  }
  if (name.ends_with(kTotal) != rises) return "allowed: _total at the end of what only rises, and of nothing else";
  return "";
}

MetricVisitor PrometheusText::visitor() {
  return [this](const Metric& metric) { add(metric); };
}

void PrometheusText::add(const Metric& metric) {
  POPGATE_ASSERT(is_name(metric.name));
  const std::string name = exported_name(metric);
  const auto [place, is_new] = index_.try_emplace(name, families_.size());
  if (is_new) families_.push_back({head_of(name, metric), {}});
  std::string& samples = families_[place->second].samples;
  samples.append(name);
  if (!metric.label_name.empty()) {
    POPGATE_ASSERT(is_name(metric.label_name));
    samples.append("{").append(metric.label_name).append("=\"");
    samples.append(escaped(metric.label_value, true)).append("\"}");
  }
  samples.append(" ").append(number_text(metric.value)).append("\n");
}

std::string PrometheusText::text() const {
  std::string text;
  for (const Family& family : families_) text.append(family.head).append(family.samples);
  return text;
}

}  // namespace popgate
