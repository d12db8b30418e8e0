// SPDX-License-Identifier: Apache-2.0
#include "tests/process/nutcracker.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

namespace popgate::process {
namespace {

// A memfd with the text, closed at the end of its scope; the child's copy lives on.
class TextFile {
 public:
  explicit TextFile(const std::string& text) : fd_(memfd_create("nutcracker.yml", MFD_CLOEXEC)) {
    if (fd_ < 0 || write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      throw std::runtime_error("cannot write the proxy's configuration");
    }
    lseek(fd_, 0, SEEK_SET);
  }
  ~TextFile() { close(fd_); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

std::string yml_of(const std::vector<NutcrackerServer>& servers, std::chrono::milliseconds timeout,
                   std::uint16_t listen_port) {
  std::string yml = "pop:\n  listen: 127.0.0.1:" + std::to_string(listen_port) +
                    "\n  hash: md5\n  distribution: ketama\n  hash_tag: \"{}\"\n  auto_eject_hosts: false\n"
                    "  server_connections: 1\n  preconnect: true\n  timeout: " +
                    std::to_string(timeout.count()) + "\n  servers:\n";
  for (const NutcrackerServer& server : servers) {
    yml += "    - 127.0.0.1:" + std::to_string(server.port) + ":" + std::to_string(server.weight) + " " + server.name +
           "\n";
  }
  return yml;
}

}  // namespace

Nutcracker::Nutcracker(const std::vector<NutcrackerServer>& servers, std::chrono::milliseconds timeout)
    : Nutcracker([&](std::uint16_t port) { return yml_of(servers, timeout, port); }) {}

void Nutcracker::start() {
  const TextFile file(yml_);
  process_.emplace(std::vector<std::string>{"nutcracker", "-c", file.path(), "-m", "512", "-a", "127.0.0.1", "-s",
                                            std::to_string(stats_port())},
                   ChildProcess::Options{.inherited = {file.fd()}});
  if (!accepts_connections(*process_, port(), std::chrono::seconds(10))) {
    throw std::runtime_error("nutcracker does not answer on port " + std::to_string(port()) + ": " +
                             process_->output());
  }
}

bool nutcracker_accepts(const std::string& yml, std::string& said) {
  const TextFile file(yml);
  ChildProcess process({"nutcracker", "--test-conf", "-c", file.path()},
                       ChildProcess::Options{.inherited = {file.fd()}});
  const auto status = process.wait_exit(std::chrono::seconds(10));
  said = process.output();
  return status && WIFEXITED(*status) && WEXITSTATUS(*status) == 0;
}

}  // namespace popgate::process
