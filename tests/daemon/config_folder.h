// SPDX-License-Identifier: Apache-2.0
//
// A folder with configuration files for the length of a test.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace popgate {

class ConfigFolder {
 public:
  ConfigFolder() {
    char name[] = "/tmp/popgate-config-XXXXXX";
    if (mkdtemp(name) != nullptr) path_ = name;
  }
  ~ConfigFolder() { std::filesystem::remove_all(path_); }
  ConfigFolder(const ConfigFolder&) = delete;
  ConfigFolder& operator=(const ConfigFolder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text, mode_t mode) const {
    std::ofstream(file(name)) << text;
    chmod(file(name).c_str(), mode);
    return file(name);
  }

 private:
  std::string path_;
};

}  // namespace popgate
