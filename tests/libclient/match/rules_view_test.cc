// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/rules_view.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <string>

#include "tests/libclient/match/compiled_rules.h"

namespace popgate {
namespace {

std::vector<Rule> some_rules() {
  Rule login = on_path(on_host(rule_named("login"), "example.com"), PathMatch::kExact, "/login");
  login.match.methods = {"POST", "PUT"};
  login.limit = 5;
  login.cost = 2;
  login.action = Action::kLog;
  Rule api = on_path(on_host(rule_named("api"), "*.example.com"), PathMatch::kGlob, "/api/*/x/**/y");
  api.key = {{KeyPart::kHeader, "x-api-key"}, {KeyPart::kCookie, "session"}, {KeyPart::kHost}};
  api.count = CountMode::kAll;
  Rule off = rule_named("off");
  off.enabled = false;
  return {login, api, off, on_path(rule_named("any"), PathMatch::kPrefix, "/x")};
}

TEST(RulesView, tells_the_facts_of_enabled_rules) {
  const CompiledRules rules(some_rules());
  ASSERT_TRUE(rules.opened()) << rules.reason();
  const RuleFacts login = rules.view().facts(0);
  EXPECT_TRUE(login.exists);
  EXPECT_EQ(login.name, "login");
  EXPECT_EQ(login.limit, 5U);
  EXPECT_EQ(login.window_us, 60'000'000U);
  EXPECT_EQ(login.cost, 2U);
  EXPECT_FALSE(login.blocks);
  EXPECT_FALSE(login.counts_all);
  EXPECT_TRUE(rules.view().facts(1).blocks);
  EXPECT_TRUE(rules.view().facts(1).counts_all);
  EXPECT_FALSE(rules.view().facts(2).exists) << "disabled";
  EXPECT_EQ(rules.view().facts(3).name, "any");
  EXPECT_FALSE(rules.view().facts(4).exists);
  EXPECT_FALSE(rules.view().facts(UINT32_MAX).exists);
  EXPECT_EQ(rules.view().rule_count(), 3U);
  EXPECT_EQ(rules.view().revision(), rules.set().revision());
  EXPECT_EQ(rules.view().secrets(), test_secret());
}

TEST(RulesView, finds_rules_by_name) {
  const CompiledRules rules(some_rules());
  ASSERT_NE(rules.view().find("api"), nullptr);
  EXPECT_EQ(rules.view().find("api")->number, 1U);
  EXPECT_EQ(rules.view().find("off"), nullptr);
  EXPECT_EQ(rules.view().find(""), nullptr);
}

TEST(RulesView, sparse_rule_numbers_are_found) {
  Rule rule = rule_named("far");
  rule.number = kRuleNumbersMax - 1;
  identify(rule);
  const std::vector<std::byte> bytes = compile_rules(RuleSet({rule}), test_secret(), {});
  RulesView view;
  const char* reason = nullptr;
  ASSERT_TRUE(view.open(bytes, reason)) << reason;
  EXPECT_EQ(view.facts(kRuleNumbersMax - 1).name, "far");
  EXPECT_FALSE(view.facts(0).exists);
}

TEST(RulesView, a_second_secret_of_unknown_use_or_cut_short_is_refused) {
  const CompiledRules rules(some_rules(), {}, {test_secret(), HashSecret{}, SecondSecret::kChecked});
  ASSERT_TRUE(rules.opened()) << rules.reason();
  EXPECT_EQ(rules.names(TestRequest{}.view()), CompiledRules(some_rules()).names(TestRequest{}.view()));
  const char* reason = nullptr;
  for (const std::uint32_t use : {0U, 3U, 0x101U}) {
    std::vector<std::byte> bytes = rules.bytes();
    std::memcpy(bytes.data() + sizeof(RulesHeader) + offsetof(SecondSecretRecord, use), &use, sizeof use);
    RulesView view;
    EXPECT_FALSE(view.open(bytes, reason));
    EXPECT_STREQ(reason, "a second secret of unknown use");
  }
  for (std::size_t bytes = 0; bytes < rules.bytes().size(); ++bytes) {
    RulesView view;
    EXPECT_FALSE(view.open(std::span(rules.bytes()).first(bytes), reason)) << bytes;
  }
}

TEST(RulesView, no_rules_are_rules_too) {
  const CompiledRules rules({});
  ASSERT_TRUE(rules.opened()) << rules.reason();
  EXPECT_FALSE(rules.view().empty());
  EXPECT_TRUE(rules.names(TestRequest{}.view()).empty());
}

TEST(RulesView, a_view_that_was_never_opened_is_empty_and_matches_nothing) {
  const RulesView view;
  EXPECT_TRUE(view.empty());
  EXPECT_FALSE(view.facts(0).exists);
  EXPECT_EQ(view.find("x"), nullptr);
  Matches matches;
  match(view, TestRequest{}.view(), matches);
  EXPECT_EQ(matches.count, 0U);
}

TEST(RulesView, every_shorter_block_is_refused_and_leaves_the_view_empty) {
  const CompiledRules rules(some_rules());
  for (std::size_t bytes = 0; bytes < rules.bytes().size(); ++bytes) {
    RulesView view;
    const char* reason = nullptr;
    EXPECT_FALSE(view.open(std::span(rules.bytes()).first(bytes), reason)) << bytes;
    EXPECT_NE(reason, nullptr);
    EXPECT_TRUE(view.empty());
  }
}

TEST(RulesView, a_foreign_version_or_magic_or_an_odd_address_is_refused) {
  const CompiledRules rules(some_rules());
  RulesView view;
  const char* reason = nullptr;
  std::vector<std::byte> bytes = rules.bytes();
  bytes[offsetof(RulesHeader, version)] = std::byte{99};
  EXPECT_FALSE(view.open(bytes, reason));
  EXPECT_STREQ(reason, "a block of rules of another version");
  bytes = rules.bytes();
  bytes[0] = std::byte{0};
  EXPECT_FALSE(view.open(bytes, reason));
  EXPECT_STREQ(reason, "not a block of rules");
  bytes.assign(rules.bytes().size() + 1, std::byte{0});
  std::memcpy(bytes.data() + 1, rules.bytes().data(), rules.bytes().size());
  EXPECT_FALSE(view.open(std::span(bytes).subspan(1), reason));
  EXPECT_STREQ(reason, "the block is not aligned");
}

/// A block whose records can be changed.
class Damaged {
 public:
  Damaged() : bytes_(CompiledRules(some_rules(), {{address_of("10.0.0.0"), 8}}).bytes()) {}
  RulesHeader& header() { return *reinterpret_cast<RulesHeader*>(bytes_.data()); }
  template <typename Record>
  Record& first(const RulesSection& section) {
    return *reinterpret_cast<Record*>(bytes_.data() + section.offset);
  }
  RuleRecord& rule() { return first<RuleRecord>(header().rules); }
  std::string reason() const {
    RulesView view;
    const char* reason = nullptr;
    return view.open(bytes_, reason) ? "opened" : reason;
  }

 private:
  std::vector<std::byte> bytes_;
};

template <typename Damage>
std::string after(Damage damage) {
  Damaged block;
  damage(block);
  return block.reason();
}

TEST(RulesViewDamage, a_section_outside_the_block_is_refused) {
  EXPECT_EQ(after([](Damaged&) {}), "opened");
  using Section = RulesSection RulesHeader::*;
  for (const Section section :
       {&RulesHeader::text, &RulesHeader::trusted, &RulesHeader::rules, &RulesHeader::numbers, &RulesHeader::key_parts,
        &RulesHeader::methods, &RulesHeader::groups, &RulesHeader::paths, &RulesHeader::candidates,
        &RulesHeader::host_index, &RulesHeader::path_index, &RulesHeader::name_index}) {
    const std::string outside = "a section lies outside the block";
    EXPECT_EQ(after([&](Damaged& block) { (block.header().*section).count = UINT64_MAX; }), outside);
    EXPECT_EQ(after([&](Damaged& block) { (block.header().*section).count = 100'000; }), outside);
    EXPECT_EQ(after([&](Damaged& block) { (block.header().*section).offset = UINT64_MAX - 7; }), outside);
    EXPECT_EQ(after([&](Damaged& block) { (block.header().*section).offset += 4; }), outside);
  }
}

TEST(RulesViewDamage, a_record_that_leads_nowhere_is_refused) {
  EXPECT_EQ(after([](Damaged& block) { block.rule().number = 1000; }), "a rule's number is wrong");
  EXPECT_EQ(after([](Damaged& block) { block.rule().number = 1; }), "a rule's number is wrong");
  EXPECT_EQ(after([](Damaged& block) { block.rule().name.offset = 100'000; }), "a rule's name is wrong");
  EXPECT_EQ(after([](Damaged& block) { block.rule().name.bytes = 64; }), "a rule's name is wrong");
  EXPECT_EQ(after([](Damaged& block) { block.rule().path.bytes = 1000; }), "a rule's path is wrong");
  EXPECT_EQ(after([](Damaged& block) { block.rule().path_kind = PathKind{4}; }), "a rule's kind of path is unknown");
  EXPECT_EQ(after([](Damaged& block) { block.rule().path_kind = PathKind::kGlob; }), "a rule's glob is wrong");
  EXPECT_EQ(after([](Damaged& block) { block.rule().methods_count = 17; }), "a rule's methods are wrong");
  EXPECT_EQ(after([](Damaged& block) { block.rule().methods_first = UINT32_MAX; }), "a rule's methods are wrong");
  EXPECT_EQ(after([](Damaged& block) { block.rule().key_parts_count = 9; }), "a rule's key is wrong");
  EXPECT_EQ(after([](Damaged& block) { block.rule().key_parts_first = 4; }), "a rule's key is wrong");
}

TEST(RulesViewDamage, a_list_or_index_that_leads_nowhere_is_refused) {
  const auto number = [](Damaged& block, const RulesSection& section) -> std::uint32_t& {
    return block.first<std::uint32_t>(section);
  };
  EXPECT_EQ(after([&](Damaged& block) { number(block, block.header().numbers) = 3; }), "a rule's number is wrong");
  EXPECT_EQ(after([&](Damaged& block) { (&number(block, block.header().numbers))[2] = 3; }),
            "a rule number leads nowhere");
  EXPECT_EQ(after([&](Damaged& block) { number(block, block.header().candidates) = 3; }), "a candidate leads nowhere");
  for (const auto section : {&RulesHeader::host_index, &RulesHeader::path_index, &RulesHeader::name_index}) {
    EXPECT_EQ(after([&](Damaged& block) { number(block, block.header().*section) = 100; }), "an index leads nowhere");
    EXPECT_EQ(after([&](Damaged& block) { number(block, block.header().*section) = 1U << kIndexItemBits; }),
              "an index leads nowhere");
    EXPECT_EQ(after([&](Damaged& block) { (block.header().*section).count -= 1; }),
              (Damaged().header().*section).count == 2 ? "opened" : "an index leads nowhere");
  }
  EXPECT_EQ(after([](Damaged& block) { block.header().hostless_group = 3; }), "the group without a host leads nowhere");
}

TEST(RulesViewDamage, a_part_group_path_or_range_that_makes_no_sense_is_refused) {
  const auto part = [](Damaged& block) -> KeyPartRecord& {
    return block.first<KeyPartRecord>(block.header().key_parts);
  };
  EXPECT_EQ(after([&](Damaged& block) { part(block).type = KeyPart{0}; }), "a part of a key is of unknown type");
  EXPECT_EQ(after([&](Damaged& block) { part(block).type = KeyPart::kCustom; }), "a part of a key is of unknown type");
  EXPECT_EQ(after([&](Damaged& block) { part(block).v4_prefix = 33; }), "a prefix is longer than an address");
  EXPECT_EQ(after([&](Damaged& block) { part(block).v6_prefix = 129; }), "a prefix is longer than an address");
  EXPECT_EQ(after([&](Damaged& block) { part(block).name.bytes = UINT32_MAX; }),
            "the name of a part lies outside the text");
  EXPECT_EQ(after([](Damaged& block) { block.first<TextRecord>(block.header().methods).offset = UINT32_MAX; }),
            "a method lies outside the text");
  const auto range = [](Damaged& block) -> TrustedRecord& {
    return block.first<TrustedRecord>(block.header().trusted);
  };
  EXPECT_EQ(after([&](Damaged& block) { range(block).bytes = 17; }), "a range is wrong");
  EXPECT_EQ(after([&](Damaged& block) { range(block).prefix_bits = 33; }), "a range is wrong");
  const auto group = [](Damaged& block) -> GroupRecord& { return block.first<GroupRecord>(block.header().groups); };
  EXPECT_EQ(after([&](Damaged& block) { group(block).host.bytes = 1000; }), "a group's host is wrong");
  EXPECT_EQ(after([&](Damaged& block) { group(block).kind = GroupKind{3}; }), "a group's host is wrong");
  EXPECT_EQ(after([&](Damaged& block) { group(block).candidates_count = 4; }),
            "a group's list lies outside its section");
  const auto path = [](Damaged& block) -> PathRecord& { return block.first<PathRecord>(block.header().paths); };
  EXPECT_EQ(after([&](Damaged& block) { path(block).group = 3; }), "a path's group or text is wrong");
  EXPECT_EQ(after([&](Damaged& block) { path(block).path.offset = 1000; }), "a path's group or text is wrong");
  EXPECT_EQ(after([&](Damaged& block) { path(block).candidates_first = 4; }), "a path's list lies outside its section");
}

/// Uses everything a view offers; whatever it answers, it must stay inside the block (the address sanitizer watches).
void use_all_of(const RulesView& view) {
  TestRequest request;
  request.headers = {{"x-api-key", "k"}, {"cookie", "session=1"}};
  for (const char* host : {"example.com", "a.example.com", ""}) {
    for (const char* path : {"/login", "/api/a/x/b/y", "/x", ""}) {
      request.host = host;
      request.path = path;
      Matches matches;
      match(view, request.view(), matches);
      for (std::size_t i = 0; i < matches.count; ++i) RC_ASSERT(view.facts(matches.items[i].rule).exists);
    }
  }
  Matches found;
  (void)custom_key(view, "login", {}, found);
  ClientAddress client;
  (void)client_behind_proxies(view, {"10.0.0.1", "1.1.1.1"}, client);
}

// Four bytes at a time, because that is what most fields are: small and huge values, at any place.
RC_GTEST_PROP(RulesView, a_damaged_block_never_leads_outside, ()) {
  static const CompiledRules rules(some_rules(), {{address_of("10.0.0.0"), 8}});
  std::vector<std::byte> bytes = rules.bytes();
  const auto damages = *rc::gen::inRange(1, 4);
  for (int i = 0; i < damages; ++i) {
    const auto place = *rc::gen::inRange<std::size_t>(0, bytes.size() / 4) * 4;
    const std::uint32_t value = *rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(0, 64), rc::gen::just(UINT32_MAX),
                                                rc::gen::arbitrary<std::uint32_t>());
    std::memcpy(bytes.data() + place, &value, std::min(sizeof value, bytes.size() - place));
  }
  RulesView view;
  const char* reason = nullptr;
  if (view.open(bytes, reason)) use_all_of(view);
}

}  // namespace
}  // namespace popgate
