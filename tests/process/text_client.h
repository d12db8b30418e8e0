// SPDX-License-Identifier: Apache-2.0
//
// A blocking client of a line protocol on 127.0.0.1 (of a network namespace): what a test uses to look at a server from
// outside.
//
// Threads: one thread at a time.
// Limits: every wait ends after kPatience, with an exception.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace popgate::process {

class TextClient {
 public:
  explicit TextClient(std::uint16_t port, int network_namespace = -1);
  ~TextClient();
  TextClient(TextClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)), received_(std::move(other.received_)) {}
  TextClient(const TextClient&) = delete;
  TextClient& operator=(const TextClient&) = delete;

  void send(std::string_view bytes);
  /// Everything up to and including the first `ending`.
  [[nodiscard]] std::string read_through(std::string_view ending);
  [[nodiscard]] std::string ask(std::string_view command, std::string_view ending) {
    send(command);
    return read_through(ending);
  }

 private:
  void connect_to(std::uint16_t port);

  static constexpr std::chrono::seconds kPatience{10};
  int fd_ = -1;
  std::string received_;
};

}  // namespace popgate::process
