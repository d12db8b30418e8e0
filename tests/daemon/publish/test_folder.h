// SPDX-License-Identifier: Apache-2.0
//
// A folder on tmpfs (or on the disk of the system's temporary files) that goes away with everything in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace popgate {

class TestFolder {
 public:
  explicit TestFolder(const std::filesystem::path& parent = "/dev/shm")
      : path_((parent / "popgate-publish-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make " + path_);
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace popgate
