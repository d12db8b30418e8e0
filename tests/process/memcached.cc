// SPDX-License-Identifier: Apache-2.0
#include "tests/process/memcached.h"

#include <stdexcept>

namespace popgate::process {

void Memcached::start() {
  const std::string number = std::to_string(port());
  const std::string listen = options_.address.empty() ? "127.0.0.1" : "127.0.0.1," + options_.address;
  std::vector<std::string> argv{"memcached", "-l", listen, "-p", number, "-m", std::to_string(options_.megabytes),
                                "-t",        "1",  "-U",   "0"};
  argv.insert(argv.end(), options_.arguments.begin(), options_.arguments.end());
  process_.emplace(argv, ChildProcess::Options{.as_nobody = true, .network_namespace = options_.network_namespace});
  if (!accepts_connections(*process_, port(), std::chrono::seconds(10), options_.network_namespace)) {
    throw std::runtime_error("memcached does not answer on port " + number + ": " + process_->output());
  }
}

std::optional<std::string> Memcached::value(const std::string& key) const {
  TextClient asked = client();
  const std::string reply = asked.ask("get " + key + "\r\n", "END\r\n");
  if (reply == "END\r\n") return std::nullopt;
  const std::size_t begin = reply.find("\r\n") + 2;
  return reply.substr(begin, reply.rfind("\r\nEND\r\n") - begin);
}

std::uint64_t Memcached::number(const std::string& key) const {
  const auto text = value(key);
  return text ? std::stoull(*text) : 0;
}

}  // namespace popgate::process
