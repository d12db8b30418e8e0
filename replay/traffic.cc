// SPDX-License-Identifier: Apache-2.0
#include "replay/traffic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "replay/log_client.h"

namespace popgate {
namespace {

constexpr double kVisitorRate = 0.1;
constexpr std::uint64_t kSwarmAddresses = 64;
constexpr microseconds kPulseEvery = std::chrono::seconds(15);
constexpr microseconds kPulseOn = std::chrono::seconds(5);
constexpr std::string_view kSwarmPrefix = "2001:db8:5:1::";

struct Habit {
  const char* name;
  double rate;     // requests a second
  double from;     // share of the duration after which it begins
  bool at_random;  // exponential gaps; otherwise even ones, each within a quarter of the mean
};

// In the order of ActorKind.
constexpr std::array<Habit, 8> kHabits = {{{"visitor", kVisitorRate, 0, true},
                                           {"office", 3, 0, false},
                                           {"crawler", 2, 0, false},
                                           {"flood", 150, 0.2, false},
                                           {"pulse flood", 60, 0, false},
                                           {"swarm", 80, 0.5, false},
                                           {"brute force", 2, 0.1, false},
                                           {"slow brute force", 0.5, 0, false}}};

const Habit& habit_of(ActorKind kind) { return kHabits[static_cast<std::size_t>(kind)]; }

constexpr std::array<std::string_view, 8> kPages = {"/",      "/news",         "/products",     "/products?page=2",
                                                    "/about", "/search?q=tea", "/img/logo.png", "/css/site.css"};
constexpr std::array<std::string_view, 4> kBrowsers = {
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 14_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 "
    "Safari/605.1.15",
    "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Mobile Safari/537.36"};

microseconds after_seconds(double seconds) {
  return microseconds(std::max<std::int64_t>(1, std::llround(seconds * 1e6)));
}

}  // namespace

const char* actor_kind_name(ActorKind kind) { return habit_of(kind).name; }

// splitmix64: small, and the same everywhere.
std::uint64_t Traffic::random() {
  state_ += 0x9e3779b97f4a7c15;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31;
}

std::uint64_t Traffic::random_below(std::uint64_t bound) { return random() % bound; }

double Traffic::random_unit() { return static_cast<double>(random() >> 11) * 0x1p-53; }

Traffic::Traffic(const TrafficOptions& options) : options_(options), state_(options.seed) {
  const auto visitors = static_cast<std::size_t>(
      std::clamp(std::llround(options.rate / kVisitorRate), 0ll, static_cast<long long>(kActorsMax)));
  for (std::size_t i = 0; i < visitors; ++i) {
    char address[48];
    // Every eighth visitor comes over IPv6, each from a /64 of its own.
    if (i % 8 == 7) {
      std::snprintf(address, sizeof address, "2001:db8:%zx:%zx::1", 0x1000 + (i >> 16), i & 0xffff);
    } else {
      std::snprintf(address, sizeof address, "10.%zu.%zu.%zu", 64 + (i >> 16), i >> 8 & 0xff, i & 0xff);
    }
    add(ActorKind::kVisitor, address);
  }
  for (const char* address : {"198.51.100.10", "198.51.100.20", "198.51.100.30"}) add(ActorKind::kOffice, address);
  for (const char* address : {"192.0.2.66", "192.0.2.67"}) add(ActorKind::kCrawler, address);
  add(ActorKind::kFlood, "203.0.113.1");
  add(ActorKind::kPulseFlood, "203.0.113.2");
  add(ActorKind::kSwarm, std::string(kSwarmPrefix) + "/64");
  for (const char* address : {"203.0.113.11", "203.0.113.12", "203.0.113.13"}) add(ActorKind::kBruteForce, address);
  add(ActorKind::kSlowBrute, "203.0.113.14");
}

void Traffic::add(ActorKind kind, std::string address) {
  due_.push({first_time(kind), actors_.size()});
  actors_.push_back({kind, std::move(address), 0});
}

PopInstant Traffic::first_time(ActorKind kind) {
  const Habit& habit = habit_of(kind);
  const double begin = habit.from * std::chrono::duration<double>(options_.duration).count();
  return options_.start + after_seconds(begin + random_unit() / habit.rate);
}

PopInstant Traffic::time_after(ActorKind kind, PopInstant now) {
  const Habit& habit = habit_of(kind);
  const double mean = 1 / habit.rate;
  const double gap = habit.at_random ? -std::log(1 - random_unit()) * mean : mean * (0.75 + 0.5 * random_unit());
  PopInstant then = now + after_seconds(gap);
  if (kind != ActorKind::kPulseFlood) return then;
  const microseconds into = (then - options_.start) % kPulseEvery;
  return into < kPulseOn ? then : then + (kPulseEvery - into);
}

LoggedRequest Traffic::make(const Actor& actor, PopInstant now) {
  LoggedRequest views;
  std::string address = actor.address;
  views.time = now;
  views.method = "GET";
  views.path = kPages[random_below(kPages.size())];
  views.user_agent = kBrowsers[random_below(kBrowsers.size())];
  switch (actor.kind) {
    case ActorKind::kVisitor:
    case ActorKind::kOffice:
      break;
    case ActorKind::kCrawler:
      views.user_agent = "Mozilla/5.0 (compatible; ExampleBot/2.1; +http://bot.example/)";
      break;
    case ActorKind::kFlood:
    case ActorKind::kSwarm:
      views.path = "/";
      break;
    case ActorKind::kPulseFlood:
      views.path = "/search?q=x";
      break;
    case ActorKind::kBruteForce:
    case ActorKind::kSlowBrute:
      views.method = "POST";
      views.path = "/login";
      views.user_agent = "python-requests/2.32.3";
      break;
  }
  if (actor.kind == ActorKind::kSwarm) {
    char text[48];
    std::snprintf(text, sizeof text, "%s%x", kSwarmPrefix.data(),
                  static_cast<unsigned>(1 + random_below(kSwarmAddresses)));
    address = text;
  }
  views.client = client_address_of(address);
  views.client_text = address;
  return LoggedRequest::owning(views);
}

bool Traffic::next(LoggedRequest& out) {
  const Due due = due_.top();
  if (due.time >= options_.start + options_.duration) return false;
  due_.pop();
  Actor& actor = actors_[due.actor];
  out = make(actor, due.time);
  ++actor.requests;
  due_.push({time_after(actor.kind, due.time), due.actor});
  return true;
}

std::string combined_line(const LoggedRequest& request) {
  static constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = std::chrono::floor<std::chrono::days>(request.time.time_since_epoch());
  const std::chrono::year_month_day date{std::chrono::sys_days(day)};
  const auto second = std::chrono::floor<std::chrono::seconds>(request.time.time_since_epoch() - day).count();
  char time[64];
  std::snprintf(time, sizeof time, "%02u/%s/%04d:%02d:%02d:%02d +0000", static_cast<unsigned>(date.day()),
                kMonths[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
                static_cast<int>(second / 3600), static_cast<int>(second / 60 % 60), static_cast<int>(second % 60));
  std::string line(request.client_text);
  line.append(" - - [").append(time).append("] \"").append(request.method).append(" ").append(request.path);
  line.append(" HTTP/1.1\" 200 1024 \"-\" \"").append(request.user_agent).append("\"\n");
  return line;
}

}  // namespace popgate
