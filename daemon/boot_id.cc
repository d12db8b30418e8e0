// SPDX-License-Identifier: Apache-2.0
#include "daemon/boot_id.h"

#include <cctype>
#include <charconv>
#include <fstream>

namespace popgate {
namespace {
constexpr char kPath[] = "/proc/sys/kernel/random/boot_id";
}

Result<BootId> read_boot_id() {
  std::string text;
  if (!std::getline(std::ifstream(kPath), text)) return Error{std::string(kPath) + ": cannot read"};
  std::string digits;
  for (const char c : text) {
    if (std::isxdigit(static_cast<unsigned char>(c)) != 0) digits.push_back(c);
  }
  BootId id{};
  if (digits.size() != 2 * id.size()) return Error{std::string(kPath) + ": found \"" + text + "\", allowed: a UUID"};
  for (std::size_t i = 0; i < id.size(); ++i) {
    std::from_chars(digits.data() + 2 * i, digits.data() + 2 * i + 2, id[i], 16);
  }
  return id;
}

}  // namespace popgate
