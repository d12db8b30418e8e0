// SPDX-License-Identifier: Apache-2.0
//
// Rules for tests of the matcher: made with few words, compiled, and opened.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "daemon/rules.h"
#include "libclient/match/client_address.h"
#include "libclient/match/matcher.h"

namespace popgate {

inline Rule rule_named(std::string name) {
  Rule rule;
  rule.name = std::move(name);
  rule.key = {KeyPartSpec{}};
  rule.limit = 10;
  rule.window = WindowShape::make(std::chrono::seconds(60), 6, milliseconds(20));
  return rule;
}

inline Rule on_host(Rule rule, const std::string& host) {
  const bool suffix = host.starts_with("*.");
  rule.match.host_match = suffix ? HostMatch::kSuffix : HostMatch::kExact;
  rule.match.host = suffix ? host.substr(1) : host;
  return rule;
}

inline Rule on_path(Rule rule, PathMatch match, std::string path) {
  rule.match.path_match = match;
  rule.match.path = std::move(path);
  return rule;
}

inline HashSecret test_secret() {
  HashSecret secret;
  for (std::size_t i = 0; i < secret.bytes.size(); ++i) secret.bytes[i] = static_cast<std::uint8_t>(i * 7 + 1);
  return secret;
}

/// Numbers and identifies the rules in order, compiles and opens them.
class CompiledRules {
 public:
  explicit CompiledRules(std::vector<Rule> rules, const std::vector<AddressRange>& trusted = {},
                         const HashSecrets& secrets = test_secret()) {
    for (std::size_t i = 0; i < rules.size(); ++i) {
      rules[i].number = static_cast<RuleNumber>(i);
      identify(rules[i]);
    }
    set_ = RuleSet(std::move(rules));
    bytes_ = compile_rules(set_, secrets, trusted);
    opened_ = view_.open(bytes_, reason_);
  }

  [[nodiscard]] bool opened() const { return opened_; }
  [[nodiscard]] const char* reason() const { return reason_; }
  [[nodiscard]] const RuleSet& set() const { return set_; }
  [[nodiscard]] const RulesView& view() const { return view_; }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

  [[nodiscard]] Matches match(const Request& request) const {
    Matches matches;
    popgate::match(view_, request, matches);
    return matches;
  }
  /// The names of the rules that match, in order.
  [[nodiscard]] std::vector<std::string> names(const Request& request) const {
    const Matches matches = match(request);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < matches.count; ++i) names.emplace_back(view_.facts(matches.items[i].rule).name);
    return names;
  }

 private:
  RuleSet set_;
  std::vector<std::byte> bytes_;
  RulesView view_;
  const char* reason_ = nullptr;
  bool opened_ = false;
};

inline ClientAddress address_of(std::string_view text) {
  ClientAddress address;
  if (!parse_ip(text, address)) address = {};
  return address;
}

/// A request whose headers stand in a list.
struct TestRequest {
  std::string method = "GET";
  std::string host = "example.com";
  std::string path = "/";
  std::string client = "192.0.2.1";  // empty: not known
  std::vector<std::pair<std::string, std::string>> headers;

  [[nodiscard]] Request view() const {
    Request request;
    request.method = method;
    request.host = host;
    request.path = path;
    request.client = address_of(client);
    request.header = [](void* context, std::string_view name, std::string_view& value) {
      for (const auto& header : *static_cast<const decltype(headers)*>(context)) {
        if (header.first != name) continue;
        value = header.second;
        return true;
      }
      return false;
    };
    request.header_context = const_cast<std::vector<std::pair<std::string, std::string>>*>(&headers);
    return request;
  }
};

}  // namespace popgate
