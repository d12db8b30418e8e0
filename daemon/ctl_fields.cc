// SPDX-License-Identifier: Apache-2.0
#include "daemon/ctl_fields.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "daemon/ctl_text.h"
#include "daemon/printable_text.h"

namespace popgate {
namespace {

// Far beyond every duration that the daemon states; a number beyond it is not shown as one.
constexpr double kDurationMsMax = 1e15;

}  // namespace

const nlohmann::json& Fields::at(const char* name) const {
  static const nlohmann::json kNothing;
  const auto found = object_->is_object() ? object_->find(name) : object_->end();
  return found == object_->end() ? kNothing : *found;
}

bool Fields::has(const char* name) const { return !at(name).is_null(); }

std::string Fields::text(const char* name) const {
  const nlohmann::json& value = at(name);
  return value.is_string() ? escaped_controls(value.get_ref<const std::string&>()) : "-";
}

std::optional<double> Fields::number(const char* name) const {
  const nlohmann::json& value = at(name);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::optional<milliseconds> Fields::duration(const char* name) const {
  const std::optional<double> ms = number(name);
  if (!ms || !(std::abs(*ms) < kDurationMsMax)) return std::nullopt;
  return milliseconds(static_cast<std::int64_t>(*ms));
}

std::optional<PopInstant> Fields::time(const char* name) const {
  const nlohmann::json& value = at(name);
  return value.is_string() ? parse_utc(value.get_ref<const std::string&>()) : std::nullopt;
}

std::optional<bool> Fields::flag(const char* name) const {
  const nlohmann::json& value = at(name);
  return value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
}

std::string Fields::digits(const char* name) const {
  const std::optional<double> value = number(name);
  return value ? number_digits(*value) : "-";
}

Fields Fields::part(const char* name) const { return Fields(at(name)); }

std::vector<Fields> Fields::list(const char* name) const {
  std::vector<Fields> parts;
  const nlohmann::json& value = at(name);
  if (!value.is_array()) return parts;
  for (const nlohmann::json& part : value) {
    if (part.is_object()) parts.emplace_back(part);
  }
  return parts;
}

std::vector<std::string> Fields::texts(const char* name) const {
  std::vector<std::string> texts;
  const nlohmann::json& value = at(name);
  if (!value.is_array()) return texts;
  for (const nlohmann::json& text : value) {
    if (text.is_string()) texts.push_back(escaped_controls(text.get_ref<const std::string&>()));
  }
  return texts;
}

std::string number_digits(double number) {
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, number == std::floor(number) ? "%.0f" : "%.1f", number);
  return buffer;
}

}  // namespace popgate
