// SPDX-License-Identifier: Apache-2.0
//
// The clients of the simulated PoP: steady, bursty, greedy, sitting at the limit, and patient ones that wait for
// Retry-After. Each asks one node's worker, which looks into the table and records the hit, as an edge proxy does.
//
// Promise 10 is checked here, because only the client knows that it waited: a patient client that was told a time, and
// sent nothing until then, is admitted. Allowance: hits of other nodes that were under way at the decision may still
// deny it once, and it is then told the new time; and what an operator or a rule without counters blocks is another
// matter.
//
// Threads: one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/pop.h"

namespace popgate::simulation {

class Traffic {
 public:
  enum class Habit : std::uint8_t { kSteady, kBursty, kGreedy, kAtLimit, kPatient, kCount };
  static constexpr int kDeniedAgainMax = 1;

  struct Figures {
    std::uint64_t requests = 0;
    std::uint64_t denied = 0;
    std::uint64_t waited = 0;  // patient clients that came back in time
    std::uint64_t denied_again = 0;
  };

  Traffic(Pop& pop, std::size_t clients);
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  void start();
  void stop() { stopped_ = true; }
  /// New clients, each over the limit of the rule within kFloodLasts, all at one node.
  void flood(std::size_t rule, std::size_t clients, std::size_t home);
  static constexpr microseconds kFloodLasts{1'500'000};
  [[nodiscard]] const Figures& figures() const { return figures_; }

  struct Client {
    std::size_t rule = 0;
    Key seed;
    Habit habit = Habit::kSteady;
    double load = 1;       // of the rule's limit a window
    std::size_t home = 0;  // node
    double roaming = 0;    // share of its requests that go to another node
    int denied_in_a_row = 0;
    bool waited = false;  // sent nothing since it was told a time
    ModelInstant told_at{};
  };
  [[nodiscard]] const std::vector<Client>& clients() const { return clients_; }
  [[nodiscard]] const Rule& rule_of(const Client& client) const { return pop_.rules().all()[client.rule]; }
  /// As a key is made of a rule's counter identity and a client's.
  [[nodiscard]] static Key key_of(const Client& client, const Rule& rule) {
    return {client.seed.lo ^ rule.counter_identity, client.seed.hi};
  }
  /// Under the rule of now.
  [[nodiscard]] Key key_of(const Client& client) const { return key_of(client, rule_of(client)); }

 private:
  [[nodiscard]] std::uint64_t fits(const Client& client) const;
  void act(std::size_t index);
  void act_again(std::size_t index, microseconds pause);
  void burst(std::size_t index, std::uint64_t requests, microseconds apart, microseconds pause);
  /// True when it was admitted. `answer`: what the table said.
  bool request(Client& client, TableAnswer& answer);
  void be_patient(std::size_t index);
  void look_at_denial(Client& client, Node& node, const Key& key);
  [[nodiscard]] Node& node_for(const Client& client);

  Pop& pop_;
  Random random_;
  std::vector<Client> clients_;
  bool stopped_ = false;
  Figures figures_;
};

}  // namespace popgate::simulation
