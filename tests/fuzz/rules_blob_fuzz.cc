// SPDX-License-Identifier: Apache-2.0
//
// A worker maps what the daemon's socket hands it: no bytes may lead it outside the block. Inputs are taken as a block,
// and as changes to a good one, six bytes each: where, and what.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "daemon/rules.h"
#include "libclient/match/client_address.h"
#include "libclient/match/matcher.h"

namespace popgate {
namespace {

std::vector<std::byte> good_block() {
  std::vector<Rule> rules(4);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    rules[i].name = "rule-" + std::to_string(i);
    rules[i].number = static_cast<RuleNumber>(i);
    rules[i].key = {{KeyPart::kClientIp, "", 24, 56}, {KeyPart::kHeader, "a"}, {KeyPart::kCookie, "b"}};
    rules[i].limit = 1;
    rules[i].window = WindowShape::make(std::chrono::seconds(60), 6, milliseconds(20));
  }
  rules[0].match = {HostMatch::kExact, "a.test", PathMatch::kExact, "/x", {"GET"}};
  rules[1].match = {HostMatch::kSuffix, ".test", PathMatch::kGlob, "/a/*/b/**/c", {}};
  rules[2].match = {HostMatch::kAny, "", PathMatch::kPrefix, "/", {}};
  for (Rule& rule : rules) identify(rule);
  AddressRange range;
  range.base.bytes = 4;
  range.prefix_bits = 8;
  return compile_rules(RuleSet(std::move(rules)), HashSecret{}, {range});
}

void use(const RulesView& view) {
  Request request;
  request.method = "GET";
  request.client.bytes = 4;
  request.header = [](void*, std::string_view name, std::string_view& value) {
    value = "b=1";
    return name == "cookie";
  };
  for (const char* host : {"a.test", "b.a.test", ""}) {
    for (const char* path : {"/x", "/a/1/b/2/3/c", ""}) {
      request.host = host;
      request.path = path;
      Matches matches;
      match(view, request, matches);
      for (std::size_t i = 0; i < matches.count; ++i) {
        if (!view.facts(matches.items[i].rule).exists) std::abort();
      }
    }
  }
  Matches custom;
  (void)custom_key(view, "rule-1", {}, custom);
  ClientAddress client;
  (void)client_behind_proxies(view, {"0.0.0.1", "1.1.1.1"}, client);
}

void open_and_use(const std::vector<std::byte>& block) {
  RulesView view;
  const char* reason = nullptr;
  if (view.open(block, reason))
    use(view);
  else if (reason == nullptr || !view.empty())
    std::abort();
}

}  // namespace
}  // namespace popgate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const auto* input = reinterpret_cast<const std::byte*>(data);
  popgate::open_and_use({input, input + bytes});
  static const std::vector<std::byte> good = popgate::good_block();
  std::vector<std::byte> block = good;
  for (; bytes >= 6; input += 6, bytes -= 6) {
    std::uint16_t place = 0;
    std::memcpy(&place, input, sizeof place);
    std::memcpy(block.data() + place % (block.size() - 3), input + 2, 4);
  }
  popgate::open_and_use(block);
  return 0;
}
