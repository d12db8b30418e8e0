// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/eviction_watch.h"

#include <charconv>

namespace popgate {

EvictionWatch::EvictionWatch(Reactor& reactor, Transport& transport, SocketAddress address, milliseconds timeout,
                             Events events, milliseconds interval)
    : reactor_(reactor),
      transport_(transport),
      address_(address),
      timeout_(timeout),
      interval_(interval),
      events_(std::move(events)),
      answered_at_(reactor.host_now()),
      timer_(reactor, [this] { ask(); }) {
  timer_.start_every(interval_);
  ask();
}

void EvictionWatch::ask() {
  if (asking_) return;
  if (reactor_.host_now() - answered_at_ >= kBlindAfter * interval_) events_.sees(false);
  asking_ = true;
  exchange_ = std::make_unique<TextExchange>(
      TextExchange::Setup{&reactor_, &transport_, address_, "stats\r\n", 1, timeout_},
      [this](const MemcachedReply& reply) { take(reply); }, [this](const std::string&) { asking_ = false; });
}

void EvictionWatch::take(const MemcachedReply& reply) {
  if (reply.kind != MemcachedReply::Kind::kStat || reply.key != "evictions") return;
  std::uint64_t evictions = 0;
  const auto [end, fault] = std::from_chars(reply.text.data(), reply.text.data() + reply.text.size(), evictions);
  if (fault != std::errc{} || end != reply.text.data() + reply.text.size()) return;
  if (!evictions_ && evictions > 0) events_.evicted_before();
  const std::uint64_t before = evictions_.value_or(evictions);  // a server that restarted begins at 0 again
  evictions_ = evictions;
  answered_at_ = reactor_.host_now();
  events_.sees(true);
  if (evictions > before) events_.evicted(evictions - before);
}

}  // namespace popgate
