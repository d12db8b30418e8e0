// SPDX-License-Identifier: Apache-2.0
#include "tests/process/memcached.h"

#include <stdexcept>

#include "tests/process/text_client.h"

namespace popgate::process {

void Memcached::start() {
  const std::string number = std::to_string(port());
  process_.emplace(std::vector<std::string>{"memcached", "-l", "127.0.0.1", "-p", number, "-m",
                                            std::to_string(megabytes_), "-t", "1", "-U", "0"},
                   ChildProcess::Options{.as_nobody = true});
  if (!accepts_connections(*process_, port(), std::chrono::seconds(10))) {
    throw std::runtime_error("memcached does not answer on port " + number + ": " + process_->output());
  }
}

std::optional<std::string> Memcached::value(const std::string& key) const {
  TextClient client(port());
  const std::string reply = client.ask("get " + key + "\r\n", "END\r\n");
  if (reply == "END\r\n") return std::nullopt;
  const std::size_t begin = reply.find("\r\n") + 2;
  return reply.substr(begin, reply.rfind("\r\nEND\r\n") - begin);
}

std::uint64_t Memcached::number(const std::string& key) const {
  const auto text = value(key);
  return text ? std::stoull(*text) : 0;
}

}  // namespace popgate::process
