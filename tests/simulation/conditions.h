// SPDX-License-Identifier: Apache-2.0
//
// What is disturbed now, and since when it is not: so that a check can tell what a promise says under these conditions.
//
// Threads: one.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "tests/simulation/network.h"

namespace popgate::simulation {

class Conditions {
 public:
  explicit Conditions(World& world) : world_(world) {}

  /// Between two hosts, in either direction.
  void disturb(HostNumber a, HostNumber b) { begin(between_[pair_of(a, b)]); }
  void restore(HostNumber a, HostNumber b) { end(between_[pair_of(a, b)]); }
  /// A host and all that is between it and others.
  void disturb(HostNumber host) { begin(of_host_[host]); }
  void restore(HostNumber host) { end(of_host_[host]); }
  /// Only the daemon there: it does not run, and then has to connect anew.
  void disturb_daemon(HostNumber host) { begin(of_daemon_[host]); }
  void restore_daemon(HostNumber host) { end(of_daemon_[host]); }
  /// Some node's wall clock is further off than it may be.
  void disturb_clocks() { begin(clocks_); }
  void restore_clocks() { end(clocks_); }

  /// Since when nothing at all is disturbed; empty: something is.
  [[nodiscard]] std::optional<ModelInstant> calm_since() const { return since(all_); }
  /// The same for what lies between two nodes, both included.
  [[nodiscard]] std::optional<ModelInstant> clean_since(HostNumber a, HostNumber b) const;
  /// The same, whatever became of the daemon on the first: what one that starts there finds.
  [[nodiscard]] std::optional<ModelInstant> ways_clean_since(HostNumber from, HostNumber to) const;

 private:
  struct State {
    int faults = 0;
    ModelInstant ended{};
  };
  [[nodiscard]] static std::pair<HostNumber, HostNumber> pair_of(HostNumber a, HostNumber b) {
    return a < b ? std::pair(a, b) : std::pair(b, a);
  }
  [[nodiscard]] static std::optional<ModelInstant> since(const State& state) {
    return state.faults > 0 ? std::nullopt : std::optional(state.ended);
  }
  template <typename States, typename Of>
  [[nodiscard]] static std::optional<ModelInstant> clean_since(const States& states, const Of& of) {
    const auto found = states.find(of);
    return found == states.end() ? ModelInstant{} : since(found->second);
  }
  void begin(State& state) {
    ++state.faults;
    ++all_.faults;
  }
  void end(State& state) {
    --state.faults;
    --all_.faults;
    state.ended = all_.ended = world_.now();
  }

  World& world_;
  std::map<std::pair<HostNumber, HostNumber>, State> between_;
  std::map<HostNumber, State> of_host_;
  std::map<HostNumber, State> of_daemon_;
  State clocks_;
  State all_;
};

}  // namespace popgate::simulation
