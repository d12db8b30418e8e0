// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/ring_check.h"

#include <algorithm>

#include "daemon/count/counter_key.h"

namespace popgate {

bool RingCheckReport::agrees() const {
  return std::all_of(shards.begin(), shards.end(), [](const RingCheckShard& shard) {
    return shard.agreeing > 0 && shard.differing == 0 && shard.unreachable == 0;
  });
}

RingCheck::RingCheck(Setup setup, DoneFunction done)
    : setup_(std::move(setup)), done_(std::move(done)), next_step_(*setup_.reactor, [this] {
        exchanges_.clear();
        if (reading_) return conclude();
        reading_ = true;
        read_probes();
      }) {
  report_.through_proxy = setup_.proxy.has_value();
  for (const std::string& name : setup_.names) report_.shards.push_back({.name = name, .fault = {}});
  choose_probes(setup_.seed);
  write_probes();
}

void RingCheck::choose_probes(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::size_t> chosen(setup_.names.size());
  const std::size_t wanted = kProbesPerShard * chosen.size();
  for (std::size_t i = 0; i < kProbeTriesMax && probes_.size() < wanted; ++i) {
    char tag[kKeyTagChars];
    write_key_tag({random(), random()}, tag);
    const std::string_view tag_text(tag, sizeof tag);
    const ShardIndex shard = setup_.placement->shard_of(tag_text);
    if (chosen[shard] == kProbesPerShard) continue;
    ++chosen[shard];
    const std::string key = own_key(setup_.placement->ring_id(), tag_text, "probe");
    by_key_.emplace(key, probes_.size());
    probes_.push_back({key, random(), shard});
  }
}

void RingCheck::write_probes() {
  std::vector<std::size_t> all;
  std::vector<std::vector<std::size_t>> of_shard(setup_.names.size());
  for (std::size_t i = 0; i < probes_.size(); ++i) {
    all.push_back(i);
    of_shard[probes_[i].shard].push_back(i);
  }
  if (setup_.proxy) return write(*setup_.proxy, all);
  for (std::size_t shard = 0; shard < of_shard.size(); ++shard) write(setup_.addresses[shard], of_shard[shard]);
}

void RingCheck::write(const SocketAddress& address, std::vector<std::size_t> probes) {
  std::string commands;
  for (const std::size_t i : probes) {
    const std::string value = std::to_string(probes_[i].value);
    commands += "set " + probes_[i].key + " 0 " + std::to_string(kProbeExpirySeconds) + " " +
                std::to_string(value.size()) + "\r\n" + value + "\r\n";
  }
  ++running_;
  const std::size_t count = probes.size();
  exchanges_.push_back(std::make_unique<TextExchange>(
      TextExchange::Setup{setup_.reactor, setup_.transport, address, std::move(commands), count,
                          setup_.timeout + kProxyMargin},
      [this, probes, next = std::size_t{0}](const MemcachedReply& reply) mutable {
        if (next == probes.size()) return;
        Probe& probe = probes_[probes[next++]];
        probe.written = reply.kind == MemcachedReply::Kind::kStored;
        if (!probe.written) report_.shards[probe.shard].fault = "not written: " + std::string(reply.text);
      },
      [this, probes](const std::string& fault) {
        for (const std::size_t i : probes) {
          if (!fault.empty() && !probes_[i].written) report_.shards[probes_[i].shard].fault = "not written: " + fault;
        }
        exchange_ended();
      }));
}

void RingCheck::read_probes() {
  for (std::size_t shard = 0; shard < setup_.addresses.size(); ++shard) read(static_cast<ShardIndex>(shard));
}

void RingCheck::read(ShardIndex shard) {
  std::string keys;
  for (const Probe& probe : probes_) {
    if (probe.shard == shard) keys += " " + probe.key;
  }
  // A shard without a probe is asked for something, so that it is seen whether it answers.
  if (keys.empty()) keys = " " + own_key(setup_.placement->ring_id(), "none", "probe");
  ++running_;
  exchanges_.push_back(std::make_unique<TextExchange>(
      TextExchange::Setup{setup_.reactor, setup_.transport, setup_.addresses[shard], "get" + keys + "\r\n", 1,
                          setup_.timeout},
      [this](const MemcachedReply& reply) { take_value(reply); },
      [this, shard](const std::string& fault) {
        if (!fault.empty()) {
          report_.shards[shard].fault = "not read: " + fault;
          for (Probe& probe : probes_) {
            if (probe.shard == shard) probe.written = false;  // nothing can be said about it
          }
        }
        exchange_ended();
      }));
}

void RingCheck::take_value(const MemcachedReply& reply) {
  if (reply.kind != MemcachedReply::Kind::kValue) return;
  const auto held = by_key_.find(std::string(reply.key));
  if (held == by_key_.end()) return;
  Probe& probe = probes_[held->second];
  probe.found = reply.is_number && reply.number == probe.value;
}

void RingCheck::exchange_ended() {
  if (--running_ == 0) next_step_.start_once(microseconds(0));
}

void RingCheck::conclude() {
  for (const Probe& probe : probes_) {
    RingCheckShard& shard = report_.shards[probe.shard];
    ++(!probe.written ? shard.unreachable : probe.found ? shard.agreeing : shard.differing);
  }
  done_(report_);
}

}  // namespace popgate
