// SPDX-License-Identifier: Apache-2.0
//
// A file with given bytes that is gone when the test is.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace popgate {

class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view bytes) {
    const int fd = mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    while (!bytes.empty()) {
      const ssize_t put = write(fd, bytes.data(), bytes.size());
      if (put <= 0) {
        ADD_FAILURE() << "cannot write " << path_;
        break;
      }
      bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    close(fd);
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "popgate-test-XXXXXX";
};

}  // namespace popgate
