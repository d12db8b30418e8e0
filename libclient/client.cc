// SPDX-License-Identifier: Apache-2.0
#include "libclient/client.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "libclient/check/table_format.h"
#include "libclient/match/client_address.h"
#include "libclient/match/rules_format.h"

namespace popgate {
namespace {

void describe(const Snapshot& pair, const Matches& matches, const Decision& decision,
              popgate_verdict& verdict) noexcept {
  verdict.matched = static_cast<std::uint32_t>(matches.count);
  verdict.blocked = decision.blocked ? 1 : 0;
  verdict.would_block = decision.would_block ? 1 : 0;
  if (!decision.blocked && !decision.would_block) return;
  const RuleFacts facts = pair.rules.facts(matches.items[decision.deciding].rule);
  verdict.retry_after_s = retry_after_s(decision.remaining);
  verdict.limit = facts.limit;
  verdict.window_ms = facts.window_us / 1000;
  facts.name.copy(verdict.rule, sizeof verdict.rule - 1);
  write_key_text(decision.by_second ? matches.second_keys[decision.deciding] : matches.items[decision.deciding].key,
                 verdict.key);
}

}  // namespace

popgate_result Client::open(const Options& options) noexcept {
  if (!ring_slots_allowed(options.ring_slots) || !attachment_.set_path(options.socket_path)) return POPGATE_INVALID;
  if (!guard_.arm() || !ring_.create(options.ring_slots, options.worker_name)) return POPGATE_SYSTEM;
  random_ = ring_.id().lo | 1;
  attachment_.set_seed(ring_.id().hi);
  snapshots_.set_concurrent(options.tick_thread);
  tick();
  const auto tick_self = [](void* self) { static_cast<Client*>(self)->tick(); };
  return !options.tick_thread || tick_thread_.start(tick_self, this) ? POPGATE_OK : POPGATE_SYSTEM;
}

void Client::close() noexcept {
  if (in_forked_child()) return let_go();
  tick_thread_.stop();
  attachment_.say_goodbye();
}

// As long as the child holds the connection, the daemon does not notice the parent's end. With a tick thread, though,
// the fork may have caught it with a descriptor half handed over: then the child touches none.
void Client::let_go() noexcept {
  if (has_tick_thread()) return;
  attachment_.abandon();
  ring_.close();
}

void Client::tick() noexcept {
  if (in_forked_child()) return let_go();
  AttachMessage message;
  for (unsigned i = 0; i < kMessagesPerTick && snapshots_.ready(); ++i) {
    AttachDescriptors descriptors;
    const Attachment::Event event = attachment_.poll(HostClock::now(), ring_.file_descriptor(), message, descriptors);
    if (event == Attachment::Event::kNothing) break;
    attach(event, message, descriptors);
  }
  ticks_.attached.set(attachment_.is_attached() ? 1 : 0);
}

void Client::attach(Attachment::Event event, const AttachMessage& message, AttachDescriptors& descriptors) noexcept {
  if (event == Attachment::Event::kEnded) return;
  if (event == Attachment::Event::kRefused) return ticks_.refused.add(1);
  const bool welcome = event == Attachment::Event::kWelcome;
  if (welcome) {
    table_ = std::move(descriptors.items[0]);
    table_bytes_ = message.table_bytes;
  }
  Snapshot& pair = snapshots_.next();
  if (!map_pair(pair, descriptors.items[welcome ? 1 : 0].get(), message.rules_bytes)) {
    pair = Snapshot{};
    ticks_.refused.add(1);
    return attachment_.refuse(HostClock::now());
  }
  snapshots_.publish();
  if (welcome) ticks_.attaches.add(1);
}

bool Client::map_pair(Snapshot& pair, int rules, std::uint64_t rules_bytes) noexcept {
  if (table_bytes_ > table_bytes(kTableBucketsMax) || rules_bytes > kRulesBytesMax) return false;
  const char* reason = nullptr;
  return pair.table_memory.map(table_.get(), table_bytes_, PROT_READ, true) &&
         pair.rules_memory.map(rules, rules_bytes, PROT_READ, true) &&
         pair.table.open(pair.table_memory.view(), reason) && pair.rules.open(pair.rules_memory.view(), reason);
}

popgate_result Client::check(const Request& request, popgate_verdict* verdict) noexcept {
  if (in_forked_child()) return refuse_check();
  const Snapshots::Use use(snapshots_);
  if (!use.holds()) return refuse_check();
  checks_.checks.add(1);
  if (use.get() == nullptr) {
    checks_.detached.add(1);
    return POPGATE_PASS;
  }
  match(use.get()->rules, request, matches_);
  if (matches_.truncated) checks_.truncated.add(1);
  return conclude(*use.get(), verdict);
}

popgate_result Client::check_key(std::string_view rule, std::span<const std::byte> key,
                                 popgate_verdict* verdict) noexcept {
  if (in_forked_child()) return refuse_check();
  const Snapshots::Use use(snapshots_);
  if (!use.holds()) return refuse_check();
  if (use.get() == nullptr) {
    checks_.checks.add(1);
    checks_.detached.add(1);
    return POPGATE_PASS;
  }
  if (!custom_key(use.get()->rules, rule, key, matches_)) return refuse_check();
  checks_.checks.add(1);
  return conclude(*use.get(), verdict);
}

popgate_result Client::refuse_check() noexcept {
  checks_.checks.add(1);
  checks_.invalid.add(1);
  return POPGATE_PASS;
}

popgate_result Client::conclude(const Snapshot& pair, popgate_verdict* verdict) noexcept {
  const Decision decision = decide(pair.rules, pair.table, matches_, chance());
  if (decision.counted != 0) record(pair, decision.counted);
  ring_.count_request();
  for (std::uint32_t rest = decision.fused; rest != 0; rest &= rest - 1) {
    ring_.count_blocked(matches_.items[static_cast<std::size_t>(std::countr_zero(rest))].rule);
  }
  if (decision.blocked) checks_.blocked.add(1);
  if (!decision.blocked && decision.would_block) checks_.would_block.add(1);
  if (verdict != nullptr) describe(pair, matches_, decision, *verdict);
  return decision.blocked ? POPGATE_BLOCK : POPGATE_PASS;
}

void Client::record(const Snapshot& pair, std::uint32_t counted) noexcept {
  const std::int64_t stamp_us = PopClock::now().time_since_epoch().count();
  for (std::uint32_t i = 0; i < matches_.count; ++i) {
    if ((counted >> i & 1) == 0) continue;
    const Match& match = matches_.items[i];
    const std::uint32_t cost = pair.rules.facts(match.rule).cost;
    record_one({match.key, stamp_us, match.rule, cost});
    // Under both secrets, so that whoever knows one of them only counts completely.
    if (matches_.second == SecondSecret::kCounted) record_one({matches_.second_keys[i], stamp_us, match.rule, cost});
  }
}

void Client::record_one(const Hit& hit) noexcept {
  (ring_.record(hit) ? checks_.recorded : checks_.dropped).add(hit.cost);
}

popgate_result Client::peek(const Request& request, popgate_verdict* verdict) noexcept {
  const Snapshots::Use use(snapshots_);
  if (in_forked_child() || use.get() == nullptr) return POPGATE_PASS;
  match(use.get()->rules, request, matches_);
  const Decision decision = decide(use.get()->rules, use.get()->table, matches_, chance());
  if (verdict != nullptr) describe(*use.get(), matches_, decision, *verdict);
  return decision.blocked ? POPGATE_BLOCK : POPGATE_PASS;
}

// The top bits of a linear congruential generator: throttling needs evenness, not secrecy, at a nanosecond.
std::uint8_t Client::chance() noexcept {
  random_ = random_ * 0x5851f42d4c957f2d + 0x14057b7ef767814f;
  return static_cast<std::uint8_t>(random_ >> 56);
}

bool Client::client_address(std::string_view peer, std::string_view forwarded_for, ClientAddress& out) noexcept {
  const Snapshots::Use use(snapshots_);
  const RulesView none;
  return client_behind_proxies(use.get() != nullptr ? use.get()->rules : none, {peer, forwarded_for}, out);
}

void Client::statistics(popgate_statistics& out) const noexcept {
  out.checks = checks_.checks.get();
  out.checks_detached = checks_.detached.get();
  out.checks_invalid = checks_.invalid.get();
  out.blocked = checks_.blocked.get();
  out.would_block = checks_.would_block.get();
  out.hits_recorded = checks_.recorded.get();
  out.hits_dropped = checks_.dropped.get();
  out.matches_truncated = checks_.truncated.get();
  out.attaches = ticks_.attaches.get();
  out.refused = ticks_.refused.get();
  out.attached = in_forked_child() ? 0 : ticks_.attached.get();
}

}  // namespace popgate
