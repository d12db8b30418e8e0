// SPDX-License-Identifier: Apache-2.0
//
// Made-up traffic of which it is known who does wrong: ordinary visitors, offices of many people behind one address,
// crawlers, floods, a flood in pulses, a swarm of addresses in one IPv6 /64, and brute force on /login, fast and slow.
//
// For trying Popgate without a log, and for tests that need the truth. Everything follows from the seed: the same
// options give the same bytes on every machine, so no distribution of the standard library is used (they differ).
//
//     who            how many      requests a second, each        what it asks for
//     visitor        10 x rate     0.1, at random                 pages and their images
//     office         3             3, evenly (180 a minute)       as visitors, many user agents
//     crawler        2             2, evenly                      pages, as a bot
//     flood          1             150 from a fifth of the time   GET /
//     pulse flood    1             60 for 5 s of every 15 s       GET /search
//     swarm          1 /64         80 over 64 addresses, second half   GET /
//     brute force    3             2 from a tenth of the time     POST /login
//     slow brute     1             0.5                            POST /login
//
// Threads: one thread.
// Limits: kActorsMax actors.
#pragma once

#include <cstdint>
#include <queue>
#include <string>
#include <vector>

#include "replay/logged_request.h"

namespace popgate {

inline constexpr std::size_t kActorsMax = 1'000'000;

struct TrafficOptions {
  microseconds duration = std::chrono::seconds(60);
  std::uint64_t seed = 1;
  double rate = 100;                                      // visitors' requests a second, all together
  PopInstant start{std::chrono::seconds(1'767'225'600)};  // 2026-01-01T00:00:00Z
};

enum class ActorKind : std::uint8_t {
  kVisitor,
  kOffice,
  kCrawler,
  kFlood,
  kPulseFlood,
  kSwarm,
  kBruteForce,
  kSlowBrute
};
[[nodiscard]] const char* actor_kind_name(ActorKind kind);

struct Actor {
  ActorKind kind = ActorKind::kVisitor;
  std::string address;         // of a swarm: its /64
  std::uint64_t requests = 0;  // made so far
};

class Traffic final : public RequestSource {
 public:
  explicit Traffic(const TrafficOptions& options);
  [[nodiscard]] bool next(LoggedRequest& out) override;
  /// The truth: who they are, and how much each has asked for so far.
  [[nodiscard]] const std::vector<Actor>& actors() const { return actors_; }

 private:
  struct Due {
    PopInstant time;
    std::size_t actor;
    friend bool operator>(const Due& a, const Due& b) { return a.time != b.time ? a.time > b.time : a.actor > b.actor; }
  };
  void add(ActorKind kind, std::string address);
  [[nodiscard]] std::uint64_t random();
  [[nodiscard]] std::uint64_t random_below(std::uint64_t bound);
  [[nodiscard]] double random_unit();
  [[nodiscard]] PopInstant first_time(ActorKind kind);
  [[nodiscard]] PopInstant time_after(ActorKind kind, PopInstant now);
  [[nodiscard]] LoggedRequest make(const Actor& actor, PopInstant now);

  TrafficOptions options_;
  std::uint64_t state_;
  std::vector<Actor> actors_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
};

/// The request as a line of a Combined log, with its newline; whole seconds, as servers write them.
[[nodiscard]] std::string combined_line(const LoggedRequest& request);

}  // namespace popgate
