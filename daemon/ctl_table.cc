// SPDX-License-Identifier: Apache-2.0
#include "daemon/ctl_table.h"

#include <algorithm>
#include <string_view>

#include "daemon/result.h"

namespace popgate {
namespace {

constexpr std::string_view kGap = "  ";

// Characters of UTF-8; wide ones count as one, which only costs a little alignment.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

void CtlTable::add(std::vector<std::string> row) {
  POPGATE_ASSERT(row.size() == columns_.size());
  rows_.push_back(std::move(row));
}

std::string CtlTable::text(const std::string& indent) const {
  std::vector<std::string> heads;
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) {
    heads.push_back(column.head);
    widths.push_back(width_of(column.head));
  }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line = indent;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - width_of(cells[i]), ' ');
      if (i > 0) line += kGap;
      line += columns_[i].to_the_right ? padding + cells[i] : cells[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line(heads);
  for (const auto& row : rows_) add_line(row);
  return text;
}

}  // namespace popgate
