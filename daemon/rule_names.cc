// SPDX-License-Identifier: Apache-2.0
#include "daemon/rule_names.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "libclient/file_descriptor.h"

namespace popgate {
namespace {

constexpr std::size_t kFileBytesMax = kRuleNamesMax * (kRuleNameBytesMax + 1);

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kRuleNameBytesMax &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

RuleNames::RuleNames(std::string path) : path_(std::move(path)) {
  if (!path_.empty()) read();
}

void RuleNames::read() {
  const FileDescriptor fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status = {};
  if (!fd.is_open() || fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  std::string bytes(std::min(static_cast<std::size_t>(status.st_size), kFileBytesMax), '\0');
  const ssize_t taken = pread(fd.get(), bytes.data(), bytes.size(), 0);
  std::string_view rest(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(taken, 0)));
  while (names_.size() < kRuleNamesMax) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return;  // a line cut short by a kill is not one
    const std::string_view line = rest.substr(0, end);
    if (is_name(line)) names_.emplace(rule_id(line), line);
    rest.remove_prefix(end + 1);
  }
}

Status RuleNames::learn(const RuleSet& rules) {
  std::string lines = "\n";  // ends a line that was cut short; an empty one is ignored
  for (const Rule& rule : rules.all()) {
    if (names_.size() >= kRuleNamesMax || names_.contains(rule.id) || !is_name(rule.name)) continue;
    names_.emplace(rule.id, rule.name);
    lines.append(rule.name).append("\n");
  }
  if (lines.size() == 1 || path_.empty()) return {};
  const FileDescriptor fd(
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (fd.is_open() && ::write(fd.get(), lines.data(), lines.size()) == static_cast<ssize_t>(lines.size())) return {};
  return Error{path_ + ": cannot write: " + std::strerror(errno)};
}

std::optional<std::string> RuleNames::name_of(RuleId rule) const {
  const auto found = names_.find(rule);
  return found == names_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace popgate
