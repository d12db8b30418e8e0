// SPDX-License-Identifier: Apache-2.0
//
// The short run of a fuzz target, where no fuzzer is linked: every file of its corpus as it is, then a fixed number of
// inputs made from them by chance. The same seed makes the same inputs with every compiler.
//
// It shares the sanitizer build's objects with all other tests, and so costs a clean clone next to nothing; what needs
// guidance by coverage to be found, the preset `fuzz` finds.
//
//     mutation_run INPUTS SEED FOLDER
//
// Limits: an input has kInputBytesMax bytes.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kInputBytesMax = 4096;
constexpr std::size_t kChangesMax = 8;
// What lengths, counts and numbers in text are wrong by.
constexpr std::array<unsigned char, 12> kTelling{0x00, 0x01, 0x7f, 0x80, 0xff, '0', '9', '-', ' ', '\n', '\r', '"'};

class Inputs {
 public:
  Inputs(std::vector<std::string> corpus, std::uint64_t seed) : corpus_(std::move(corpus)), random_(seed) {}

  [[nodiscard]] std::string next() {
    std::string input = corpus_[below(corpus_.size())];
    for (std::size_t changes = 1 + below(kChangesMax); changes > 0; --changes) change(input);
    input.resize(std::min(input.size(), kInputBytesMax));
    return input;
  }

 private:
  // Not std::uniform_int_distribution, whose numbers are each library's own.
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }

  void change(std::string& input) {
    const std::size_t at = below(input.size() + 1);
    const std::size_t bytes = 1 + below(16);
    switch (below(6)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(random_());
        break;
      case 1:
        if (at < input.size()) input[at] = static_cast<char>(kTelling[below(kTelling.size())]);
        break;
      case 2:
        input.erase(at, bytes);
        break;
      case 3:
        input.insert(at, bytes, static_cast<char>(random_()));
        break;
      case 4:
        input.resize(at);
        break;
      default: {
        const std::string& other = corpus_[below(corpus_.size())];
        input.insert(at, other.substr(below(other.size() + 1), 64));
      }
    }
  }

  std::vector<std::string> corpus_;
  std::mt19937_64 random_;
};

void run(const std::string& input) {
  (void)LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

std::vector<std::string> read_corpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s INPUTS SEED FOLDER\n", argv[0]);
    return 2;
  }
  const std::vector<std::string> corpus = read_corpus(argv[3]);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no file, allowed: a corpus of at least one\n", argv[3]);
    return 2;
  }
  for (const std::string& input : corpus) run(input);
  Inputs inputs(corpus, std::strtoull(argv[2], nullptr, 10));
  const std::uint64_t count = std::strtoull(argv[1], nullptr, 10);
  for (std::uint64_t i = 0; i < count; ++i) run(inputs.next());
  std::printf("%zu files of the corpus and %llu inputs made from them\n", corpus.size(),
              static_cast<unsigned long long>(count));
}
