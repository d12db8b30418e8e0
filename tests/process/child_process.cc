// SPDX-License-Identifier: Apache-2.0
#include "tests/process/child_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "tests/process/network_namespace.h"

namespace popgate::process {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPollInterval{2};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environment_with(const std::vector<std::string>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  all.insert(all.end(), added.begin(), added.end());
  return all;
}

// Runs in the child between fork and exec: system calls only.
[[noreturn]] void become(char* const* argv, char* const* envp, int output, const ChildProcess::Options& options,
                         pid_t parent) {
  constexpr uid_t kNobody = 65534;
  if (options.network_namespace >= 0 && setns(options.network_namespace, CLONE_NEWNET) != 0) _exit(127);
  if (options.mount_namespace >= 0 && setns(options.mount_namespace, CLONE_NEWNS) != 0) _exit(127);
  const bool gives_up_root = options.as_nobody && geteuid() == 0;
  if (gives_up_root && (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0)) _exit(127);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the test died before the line above
  signal(SIGPIPE, SIG_DFL);             // what the test ignores would be ignored by the program too
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  for (const int fd : options.inherited) fcntl(fd, F_SETFD, 0);
  execvpe(argv[0], argv, envp);
  _exit(127);
}

bool connects(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool connected = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return connected;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& argv, const Options& options) { start(argv, options); }

void ChildProcess::start(const std::vector<std::string>& argv, const Options& options) {
  const std::vector<std::string> environment = environment_with(options.environment);
  const std::vector<char*> argv_pointers = pointers(argv);
  const std::vector<char*> envp_pointers = pointers(environment);
  output_ = memfd_create("child-output", MFD_CLOEXEC);
  if (output_ < 0) throw std::runtime_error(std::string("memfd_create: ") + std::strerror(errno));
  fcntl(output_, F_SETFL, O_APPEND);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become(argv_pointers.data(), envp_pointers.data(), output_, options, parent);
  if (pid_ < 0) {
    release();
    throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  }
}

ChildProcess::~ChildProcess() { release(); }

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), status_(other.status_), output_(std::exchange(other.output_, -1)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this == &other) return *this;
  release();
  pid_ = std::exchange(other.pid_, -1);
  status_ = other.status_;
  output_ = std::exchange(other.output_, -1);
  return *this;
}

void ChildProcess::release() {
  kill_now();
  if (output_ >= 0) close(output_);
  output_ = -1;
}

bool ChildProcess::running() {
  if (pid_ <= 0 || status_) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return !status_;
}

void ChildProcess::signal(int number) {
  if (running()) kill(pid_, number);
}

std::optional<int> ChildProcess::wait_exit(std::chrono::milliseconds deadline) {
  if (!eventually([this] { return !running(); }, deadline)) return std::nullopt;
  return status_;
}

std::optional<int> ChildProcess::stop(std::chrono::milliseconds deadline) {
  signal(SIGTERM);
  if (const auto status = wait_exit(deadline)) return status;
  kill_now();
  return std::nullopt;
}

void ChildProcess::kill_now() {
  if (!running()) return;
  kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  status_ = status;
}

void ChildProcess::freeze() {
  if (!running()) return;
  kill(pid_, SIGSTOP);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT);
}

void ChildProcess::thaw() { signal(SIGCONT); }

std::string ChildProcess::output() const {
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = pread(output_, buffer, sizeof buffer, static_cast<off_t>(text.size()))) > 0) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds deadline) {
  const Clock::time_point end = Clock::now() + deadline;
  while (!condition()) {
    if (Clock::now() >= end) return false;
    poll(nullptr, 0, static_cast<int>(kPollInterval.count()));
  }
  return true;
}

bool accepts_connections(ChildProcess& child, std::uint16_t port, std::chrono::milliseconds deadline,
                         int network_namespace) {
  bool connected = false;
  const bool decided = eventually(
      [&] {
        NetworkNamespace::run_in(network_namespace, [&] { connected = connects(port); });
        return connected || !child.running();
      },
      deadline);
  return decided && connected;
}

}  // namespace popgate::process
