// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/matcher.h"

#include <algorithm>

#include "libclient/match/glob.h"
#include "libclient/match/normal_request.h"
#include "libclient/match/request_key.h"
#include "libclient/match/rules_index.h"

namespace popgate {
namespace {

/// The first kMatchesMax rules that hold, by their place in the configuration.
class Found {
 public:
  /// True when a rule at `index` or behind could change nothing any more.
  [[nodiscard]] bool closed_to(std::uint32_t index) const noexcept {
    return truncated_ && index > rules_[kMatchesMax - 1];
  }

  // Lists are short and mostly come in order: insertion beats sorting.
  void add(std::uint32_t index) noexcept {
    std::size_t place = count_;
    if (count_ == kMatchesMax) {
      truncated_ = true;
      if (index > rules_[kMatchesMax - 1]) return;
      place = kMatchesMax - 1;
    } else {
      ++count_;
    }
    for (; place > 0 && rules_[place - 1] > index; --place) rules_[place] = rules_[place - 1];
    rules_[place] = index;
  }

  [[nodiscard]] std::span<const std::uint32_t> rules() const noexcept { return {rules_, count_}; }
  [[nodiscard]] bool truncated() const noexcept { return truncated_; }

 private:
  std::uint32_t rules_[kMatchesMax];  // only the first count_ are set
  std::size_t count_ = 0;
  bool truncated_ = false;
};

class Search {
 public:
  Search(const RulesBlock& block, const NormalRequest& request, Found& found) noexcept
      : block_(block), request_(request), found_(found) {}

  void run() noexcept {
    if (!request_.host().empty()) {
      look_in(find_group(GroupKind::kHost, request_.host()));
      look_in_suffixes();
    }
    look_in(block_.header->hostless_group);
  }

 private:
  [[nodiscard]] std::uint32_t find_group(GroupKind kind, std::string_view host) const noexcept {
    const std::uint64_t hash = index_hash(host_seed(block_.header->index_seed, kind), host);
    return index_find(block_.host_index, hash, [&](std::uint32_t group) {
      return block_.groups[group].kind == kind && block_.text_of(block_.groups[group].host) == host;
    });
  }

  /// Every label boundary, from the shortest suffix to the longest that any rule has; the first label is never part.
  void look_in_suffixes() noexcept {
    const std::string_view host = request_.host();
    for (std::size_t dot = host.size(); dot-- > 1;) {
      if (host.size() - dot > block_.header->suffix_bytes_max) return;
      if (host[dot] == '.') look_in(find_group(GroupKind::kSuffix, host.substr(dot)));
    }
  }

  void look_in(std::uint32_t group) noexcept {
    if (group == kNoRecord) return;
    const GroupRecord& record = block_.groups[group];
    consider(record.candidates_first, record.candidates_count);
    const std::string_view path = request_.path();
    if (block_.path_index.empty() || path.empty()) return;
    const std::uint64_t hash = index_hash(path_seed(block_.header->index_seed, group), path);
    const std::uint32_t exact = index_find(block_.path_index, hash, [&](std::uint32_t i) {
      return block_.paths[i].group == group && block_.text_of(block_.paths[i].path) == path;
    });
    if (exact != kNoRecord) consider(block_.paths[exact].candidates_first, block_.paths[exact].candidates_count);
  }

  void consider(std::uint32_t first, std::uint32_t count) noexcept {
    for (const std::uint32_t index : block_.candidates.subspan(first, count)) {
      if (found_.closed_to(index)) return;  // a list ascends
      const RuleRecord& rule = block_.rules[index];
      if (method_holds(rule) && path_holds(rule)) found_.add(index);
    }
  }

  [[nodiscard]] bool method_holds(const RuleRecord& rule) const noexcept {
    if (rule.methods_count == 0) return true;
    const auto methods = block_.methods.subspan(rule.methods_first, rule.methods_count);
    return std::any_of(methods.begin(), methods.end(),
                       [&](const TextRecord& method) { return block_.text_of(method) == request_.method(); });
  }

  [[nodiscard]] bool path_holds(const RuleRecord& rule) const noexcept {
    const std::string_view wanted = block_.text_of(rule.path);
    switch (rule.path_kind) {
      case PathKind::kAny:
        return true;
      case PathKind::kExact:
        return request_.path() == wanted;
      case PathKind::kPrefix:
        return request_.path().starts_with(wanted);
      case PathKind::kGlob:
        return glob_matches(wanted, {rule.glob_head_bytes, rule.glob_tail_bytes}, request_.path());
    }
    return false;
  }

  const RulesBlock& block_;
  const NormalRequest& request_;
  Found& found_;
};

HashSecret secret_of(const std::uint8_t (&bytes)[16]) noexcept {
  HashSecret secret;
  std::copy(std::begin(bytes), std::end(bytes), secret.bytes.begin());
  return secret;
}

// Apart, and called only while the secret changes: the usual request pays one comparison for it.
[[gnu::noinline]] void add_second_keys(const RulesBlock& block, std::span<const std::uint32_t> rules,
                                       const NormalRequest& request, Matches& out) noexcept {
  out.second = static_cast<SecondSecret>(block.second_secret->use);
  const HashSecret secret = secret_of(block.second_secret->secret);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    out.second_keys[i] = request_key({block, block.rules[rules[i]], request}, secret);
  }
}

Key custom_key_of(const RuleRecord& rule, std::string_view bytes, const HashSecret& secret) noexcept {
  KeyBuilder builder(secret, rule.counter_identity);
  builder.add(KeyPart::kCustom, {}, bytes);
  return builder.finish();
}

}  // namespace

void match(const RulesView& rules, const Request& request, Matches& out) noexcept {
  out.count = 0;
  out.truncated = false;
  out.second = SecondSecret::kNone;
  if (rules.empty() || rules.rule_count() == 0) return;
  const RulesBlock& block = rules.block();
  const NormalRequest normal(request);
  Found found;
  Search(block, normal, found).run();
  const HashSecret secret = secret_of(block.header->secret);
  for (const std::uint32_t index : found.rules()) {
    const RuleRecord& rule = block.rules[index];
    out.items[out.count++] = {rule.number, request_key({block, rule, normal}, secret)};
  }
  if (block.second_secret != nullptr) add_second_keys(block, found.rules(), normal, out);
  out.truncated = found.truncated();
}

bool custom_key(const RulesView& rules, std::string_view rule_name, std::span<const std::byte> bytes,
                Matches& out) noexcept {
  out.count = 0;
  out.truncated = false;
  out.second = SecondSecret::kNone;
  const RuleRecord* rule = rules.find(rule_name);
  if (rule == nullptr) return false;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const HashSecrets secrets = rules.secrets();
  out.count = 1;
  out.items[0] = {rule->number, custom_key_of(*rule, text, secrets.first)};
  out.second = secrets.use;
  if (secrets.use != SecondSecret::kNone) out.second_keys[0] = custom_key_of(*rule, text, secrets.second);
  return true;
}

}  // namespace popgate
