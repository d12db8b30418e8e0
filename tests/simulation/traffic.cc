// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/traffic.h"

#include <algorithm>

namespace popgate::simulation {

Traffic::Traffic(Pop& pop, std::size_t clients) : pop_(pop), random_(pop.world().random_for("traffic")) {
  for (std::size_t i = 0; i < clients; ++i) {
    Client client;
    client.rule = static_cast<std::size_t>(draw(random_, 0, pop.rules().all().size() - 1));
    client.seed = {random_(), random_()};
    client.habit = static_cast<Habit>(draw(random_, 0, static_cast<std::uint64_t>(Habit::kCount) - 1));
    client.load = static_cast<double>(draw(random_, 3, 25)) / 10;
    client.home = static_cast<std::size_t>(draw(random_, 0, pop.nodes().size() - 1));
    client.roaming = chance(random_, 0.5) ? 0.5 : 0;
    clients_.push_back(client);
  }
}

void Traffic::start() {
  for (std::size_t i = 0; i < clients_.size(); ++i)
    act_again(i, draw(random_, microseconds(0), microseconds(2'000'000)));
}

void Traffic::act_again(std::size_t index, microseconds pause) {
  pop_.world().after(pause, [this, index] {
    if (!stopped_) act(index);
  });
}

void Traffic::flood(std::size_t rule, std::size_t clients, std::size_t home) {
  for (std::size_t i = 0; i < clients; ++i) {
    const auto client = std::make_shared<Client>(Client{.rule = rule, .seed = {random_(), random_()}, .home = home});
    for (std::uint64_t hit = 0; hit <= fits(*client); ++hit) {
      pop_.world().after(draw(random_, microseconds(0), kFloodLasts), [this, client] {
        TableAnswer answer;
        if (!stopped_) request(*client, answer);
      });
    }
  }
}

// Requests that a window has room for.
std::uint64_t Traffic::fits(const Client& client) const {
  return std::max<std::uint64_t>(rule_of(client).limit / rule_of(client).cost, 1);
}

void Traffic::act(std::size_t index) {
  Client& client = clients_[index];
  const Rule& rule = rule_of(client);
  const auto window = rule.window.window;
  const std::uint64_t fits = this->fits(client);
  const auto between = [&](double load) {
    return microseconds(
        static_cast<std::int64_t>(static_cast<double>(window.count()) / (static_cast<double>(fits) * load)));
  };
  TableAnswer answer;
  switch (client.habit) {
    case Habit::kSteady:
      request(client, answer);
      return act_again(index, draw(random_, between(client.load) / 2, between(client.load) * 3 / 2));
    case Habit::kGreedy:
      request(client, answer);
      return act_again(index, draw(random_, microseconds(1), between(client.load * 4)));
    case Habit::kBursty:
      return burst(index, draw(random_, 1, fits + fits / 2 + 1), draw(random_, microseconds(0), milliseconds(5)),
                   draw(random_, window / 4, window * 2));
    case Habit::kAtLimit:  // as much as fits, each time as soon as the last has left the window
      return burst(index, fits, draw(random_, microseconds(0), milliseconds(2)),
                   window + draw(random_, microseconds(1), milliseconds(30)));
    case Habit::kPatient:
    case Habit::kCount:
      return be_patient(index);
  }
}

void Traffic::burst(std::size_t index, std::uint64_t requests, microseconds apart, microseconds pause) {
  for (std::uint64_t i = 0; i < requests; ++i) {
    pop_.world().after(apart * static_cast<std::int64_t>(i), [this, index] {
      TableAnswer answer;
      if (!stopped_) request(clients_[index], answer);
    });
  }
  act_again(index, apart * static_cast<std::int64_t>(requests) + pause);
}

Node& Traffic::node_for(const Client& client) {
  const bool roams = client.roaming > 0 && chance(random_, client.roaming);
  return *pop_.nodes()[roams ? static_cast<std::size_t>(draw(random_, 0, pop_.nodes().size() - 1)) : client.home];
}

bool Traffic::request(Client& client, TableAnswer& answer) {
  // A patient client asks again where it was told to wait.
  Node& node = client.habit == Habit::kPatient ? *pop_.nodes()[client.home] : node_for(client);
  ++figures_.requests;
  const Rule* const matched = node.worker_rule(rule_of(client).id);
  if (matched == nullptr) return true;
  const Rule& rule = *matched;
  const Key key = key_of(client, rule);
  answer = node.check(rule, key);
  const bool denied = answer.live && (answer.flags & kTableFlagLogOnly) == 0;
  if (denied) ++figures_.denied;
  if (client.habit == Habit::kPatient && denied) look_at_denial(client, node, key);
  if (!denied || rule.count == CountMode::kAll) {
    pop_.stamps().hit(node, rule, key);
    node.record(rule, key);
  }
  return !denied;
}

void Traffic::be_patient(std::size_t index) {
  Client& client = clients_[index];
  const Rule& rule = rule_of(client);
  TableAnswer answer;
  if (client.waited) ++figures_.waited;
  const bool admitted = request(client, answer);
  client.waited = !admitted;
  if (admitted) {
    client.denied_in_a_row = 0;
    const auto window = rule.window.window;
    return act_again(index, draw(random_, microseconds(1), window / static_cast<std::int64_t>(rule.limit * 2 + 1)));
  }
  client.told_at = pop_.world().now();
  const auto retry_after = std::chrono::ceil<std::chrono::seconds>(answer.remaining);
  act_again(index, pop_.nodes()[client.home]->machine().true_time_of(retry_after));
}

void Traffic::look_at_denial(Client& client, Node& node, const Key& key) {
  if (!client.waited) return;
  ++figures_.denied_again;
  ++client.denied_in_a_row;
  const Rule& rule = rule_of(client);
  const auto calm = pop_.conditions().calm_since();
  const ModelInstant settled = calm ? std::max(*calm, pop_.rules_same_since()) : ModelInstant{};
  const bool quiet = calm && client.told_at - settled > rule.window.window * 2 + std::chrono::seconds(3);
  if (!quiet || !node.is_running() || client.denied_in_a_row <= kDeniedAgainMax) return;
  const KeyEntries entries = node.pipeline().mitigations().find(key);
  if (entries.automatic == nullptr || entries.by_operator != nullptr || entries.lift != nullptr) return;
  if (entries.automatic->evidence.under != DecidedUnder::kCounters) return;
  pop_.broken("10", "a client of " + rule.name + " with key " + key_text(key) + " waited as " + node.name() +
                        " told it, sent nothing, and was denied " + std::to_string(client.denied_in_a_row) +
                        " times more");
}

}  // namespace popgate::simulation
