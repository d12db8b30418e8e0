// SPDX-License-Identifier: Apache-2.0
//
// A table for the terminal: columns as wide as their widest cell, numbers to the right.
//
// Threads: a value.
#pragma once

#include <string>
#include <vector>

namespace popgate {

class CtlTable {
 public:
  struct Column {
    std::string head;
    bool to_the_right = false;
  };

  explicit CtlTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// A cell a column, printable.
  void add(std::vector<std::string> row);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// Each line begins with `indent`; nothing trails.
  [[nodiscard]] std::string text(const std::string& indent = {}) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace popgate
