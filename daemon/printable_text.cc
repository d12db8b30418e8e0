// SPDX-License-Identifier: Apache-2.0
#include "daemon/printable_text.h"

#include <algorithm>

namespace popgate {
namespace {

constexpr char kHex[] = "0123456789abcdef";

bool is_printable_ascii(char c) { return c >= 0x20 && c <= 0x7e; }
bool is_control(unsigned char byte) { return byte < 0x20 || byte == 0x7f; }

void add_escaped(unsigned char byte, std::string& out) {
  out += "\\x";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

std::string_view rest_of(std::string_view text, std::size_t bytes_max) { return text.size() > bytes_max ? "..." : ""; }

}  // namespace

std::string printable_ascii(std::string_view text, std::size_t bytes_max) {
  std::string out(text.substr(0, bytes_max));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return !is_printable_ascii(c); }, '?');
  return out.append(rest_of(text, bytes_max));
}

std::string escaped_ascii(std::string_view text, std::size_t bytes_max) {
  std::string out;
  for (const char c : text.substr(0, bytes_max)) {
    if (is_printable_ascii(c)) {
      out += c;
    } else {
      add_escaped(static_cast<unsigned char>(c), out);
    }
  }
  return out.append(rest_of(text, bytes_max));
}

std::string escaped_controls(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are control characters too.
    const bool is_c1 = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (is_c1) {
      add_escaped(static_cast<unsigned char>(text[++i]), out);
    } else if (is_control(byte)) {
      add_escaped(byte, out);
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace popgate
