// SPDX-License-Identifier: Apache-2.0
//
// Reads the daemon's JSON for a view: a field that is absent, null or of another type is shown as unknown, because the
// daemon may be of another version than the tool, and half an answer is better than none at three in the morning.
//
// Threads: values; the JSON must outlive them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "libclient/instant.h"

namespace popgate {

class Fields {
 public:
  explicit Fields(const nlohmann::json& object) : object_(&object) {}

  /// Present and not null.
  [[nodiscard]] bool has(const char* name) const;
  /// Text, printable; "-" when unknown.
  [[nodiscard]] std::string text(const char* name) const;
  [[nodiscard]] std::optional<double> number(const char* name) const;
  [[nodiscard]] std::optional<milliseconds> duration(const char* name) const;
  [[nodiscard]] std::optional<PopInstant> time(const char* name) const;
  [[nodiscard]] std::optional<bool> flag(const char* name) const;
  /// A number as digits, at most one behind the point; "-" when unknown.
  [[nodiscard]] std::string digits(const char* name) const;
  /// An object; without fields when unknown.
  [[nodiscard]] Fields part(const char* name) const;
  /// The objects of a list.
  [[nodiscard]] std::vector<Fields> list(const char* name) const;
  /// The texts of a list, printable.
  [[nodiscard]] std::vector<std::string> texts(const char* name) const;

 private:
  [[nodiscard]] const nlohmann::json& at(const char* name) const;

  const nlohmann::json* object_;
};

[[nodiscard]] std::string number_digits(double number);

}  // namespace popgate
