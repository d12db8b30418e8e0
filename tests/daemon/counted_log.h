// SPDX-License-Identifier: Apache-2.0
//
// Keeps what is logged while it lives, instead of writing it: how many lines does a flood make?
//
// Threads: one; the default logger is the process's.
#pragma once

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace popgate {

class CountedLog {
 public:
  CountedLog() : sink_(std::make_shared<Sink>()), before_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("counted", sink_));
  }
  ~CountedLog() { spdlog::set_default_logger(before_); }
  CountedLog(const CountedLog&) = delete;
  CountedLog& operator=(const CountedLog&) = delete;

  [[nodiscard]] std::size_t lines() const { return sink_->lines.size(); }
  [[nodiscard]] std::size_t lines_with(std::string_view text) const {
    return static_cast<std::size_t>(
        std::count_if(sink_->lines.begin(), sink_->lines.end(),
                      [&](const std::string& line) { return line.find(text) != std::string::npos; }));
  }

 private:
  class Sink final : public spdlog::sinks::base_sink<std::mutex> {
   public:
    std::vector<std::string> lines;

   protected:
    void sink_it_(const spdlog::details::log_msg& message) override {
      lines.emplace_back(message.payload.data(), message.payload.size());
    }
    void flush_() override {}
  };

  std::shared_ptr<Sink> sink_;
  std::shared_ptr<spdlog::logger> before_;
};

}  // namespace popgate
