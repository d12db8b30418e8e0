// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/memcached_model.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace popgate::simulation {
namespace {

constexpr std::string_view kBadFormat = "CLIENT_ERROR bad command line format\r\n";
constexpr std::string_view kError = "ERROR\r\n";

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

bool MemcachedModel::serve(std::string& input, std::string& output) {
  while (true) {
    const std::size_t line_end = input.find('\n');
    if (line_end == std::string::npos) return true;
    std::string_view line(input.data(), line_end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const Words words = words_of(line);
    const std::string_view command = words.empty() ? std::string_view() : words[0];
    if (command == "add" || command == "set") {
      bool whole = true;
      if (!store(words, input, line_end + 1, output, whole)) return false;
      if (!whole) return true;
      continue;  // the input is consumed
    }
    if (command == "get") {
      get(words, output);
    } else if (command == "incr") {
      add_delta(words, output);
    } else if (command == "delete") {
      remove(words, output);
    } else if (command == "stats") {
      stats(output);
    } else if (command == "quit") {
      return false;
    } else {
      output += kError;
    }
    input.erase(0, line_end + 1);
  }
}

// add and set: the data follows the line. `whole`: it has all come.
bool MemcachedModel::store(const Words& words, std::string& input, std::size_t line_bytes, std::string& output,
                           bool& whole) {
  if (words.size() != 5) {
    output += kError;
    input.erase(0, line_bytes);
    return true;
  }
  const auto bytes = number_in<std::size_t>(words[4]);
  const bool good = words[1].size() <= kKeyBytesMax && number_in<std::uint32_t>(words[2]) &&
                    number_in<std::int64_t>(words[3]) && bytes;
  if (!good) {
    output += kBadFormat;
    input.erase(0, line_bytes);
    return true;
  }
  whole = input.size() >= line_bytes + *bytes + 2;
  if (!whole) return true;
  const std::string_view data(input.data() + line_bytes, *bytes + 2);
  if (!data.ends_with("\r\n")) {
    output += "CLIENT_ERROR bad data chunk\r\n";
    return false;  // the real one goes on with what it takes for commands; nobody here sends such a thing
  }
  store_item(words, data.substr(0, *bytes), output);
  input.erase(0, line_bytes + *bytes + 2);
  return true;
}

void MemcachedModel::store_item(const Words& words, std::string_view data, std::string& output) {
  if (words[0] == "add" && find(words[1]) != nullptr) {
    output += "NOT_STORED\r\n";
    return;
  }
  if (no_memory_) {
    output += "SERVER_ERROR out of memory storing object\r\n";
    return;
  }
  if (find(words[1]) != nullptr) erase(items_.at(words[1]));
  const std::int64_t expiry = *number_in<std::int64_t>(words[3]);
  Item item{std::string(words[1]), std::string(data), std::string(words[2]), expiry};
  if (expiry > 0 && expiry <= kRelativeExpiryMax) item.expires = setup_.seconds_now() + expiry;
  lru_.push_front(std::move(item));
  items_.emplace(lru_.front().key, lru_.begin());
  output += "STORED\r\n";
  if (const auto hits = number_in<std::uint64_t>(data); hits && words[0] == "add") setup_.counted(words[1], *hits);
  if (items_.size() > setup_.items_max) (void)evict(items_.size() - setup_.items_max);
}

void MemcachedModel::get(const Words& words, std::string& output) {
  if (words.size() < 2) {
    output += kError;
    return;
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].size() > kKeyBytesMax) {
      output += kBadFormat;
      return;
    }
    const Item* const item = find(words[i]);
    if (item == nullptr) continue;
    output += "VALUE " + item->key + " " + item->flags + " " + std::to_string(item->value.size()) + "\r\n";
    output += item->value + "\r\n";
  }
  output += "END\r\n";
}

void MemcachedModel::add_delta(const Words& words, std::string& output) {
  if (words.size() != 3) {
    output += kError;
    return;
  }
  if (words[1].size() > kKeyBytesMax) {
    output += kBadFormat;
    return;
  }
  const auto delta = number_in<std::uint64_t>(words[2]);
  if (!delta) {
    output += "CLIENT_ERROR invalid numeric delta argument\r\n";
    return;
  }
  Item* const item = find(words[1]);
  if (item == nullptr) {
    output += "NOT_FOUND\r\n";
    return;
  }
  const std::string_view value(item->value);
  const auto before = number_in<std::uint64_t>(value.substr(0, std::min(value.find(' '), value.size())));
  if (!before) {
    output += "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
    return;
  }
  const std::string after = std::to_string(*before + *delta);  // wraps at 64 bits
  // In place when it fits: a number that wrapped keeps its length, filled up with blanks.
  item->value = after + std::string(item->value.size() - std::min(item->value.size(), after.size()), ' ');
  output += after + "\r\n";
  setup_.counted(words[1], *delta);
}

void MemcachedModel::remove(const Words& words, std::string& output) {
  if (words.size() != 2) {
    output += kError;
    return;
  }
  if (find(words[1]) == nullptr) {
    output += "NOT_FOUND\r\n";
    return;
  }
  erase(items_.at(words[1]));
  output += "DELETED\r\n";
}

void MemcachedModel::stats(std::string& output) const {
  output += "STAT curr_items " + std::to_string(items_.size()) + "\r\n";
  output += "STAT evictions " + std::to_string(evictions_) + "\r\nEND\r\n";
}

MemcachedModel::Item* MemcachedModel::find(std::string_view key) {
  const auto found = items_.find(key);
  if (found == items_.end()) return nullptr;
  const Lru::iterator item = found->second;
  if (item->expires != 0 && item->expires <= setup_.seconds_now()) {
    erase(item);
    return nullptr;
  }
  lru_.splice(lru_.begin(), lru_, item);
  return &*item;
}

void MemcachedModel::erase(Lru::iterator item) {
  items_.erase(item->key);
  lru_.erase(item);
}

std::size_t MemcachedModel::evict(std::size_t items) {
  std::size_t evicted = 0;
  for (; evicted < items && !lru_.empty(); ++evicted) erase(std::prev(lru_.end()));
  evictions_ += evicted;
  return evicted;
}

}  // namespace popgate::simulation
