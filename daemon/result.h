// SPDX-License-Identifier: Apache-2.0
//
// The outcome of what can fail in an expected way: a value, or a sentence that says what went wrong.
//
// The sentence names the file or peer, the field, what was found and what is allowed. Our own bugs are not results:
// they are assertions (POPGATE_ASSERT), which stay on in every build.
//
// Threads: values.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace popgate {

struct Error {
  std::string text;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): reads as `return value;`
  Result(Error error)
      : error_(std::move(error.text)) {}  // NOLINT(google-explicit-constructor): reads as `return Error{…};`

  [[nodiscard]] bool ok() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  [[nodiscard]] T& operator*() & { return *value_; }
  [[nodiscard]] const T& operator*() const& { return *value_; }
  [[nodiscard]] T&& operator*() && { return *std::move(value_); }
  [[nodiscard]] T* operator->() { return &*value_; }
  [[nodiscard]] const T* operator->() const { return &*value_; }
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  std::optional<T> value_;
  std::string error_;
};

/// Success, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error.text)), ok_(false) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] bool ok() const noexcept { return ok_; }
  explicit operator bool() const noexcept { return ok_; }
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  std::string error_;
  bool ok_ = true;
};

}  // namespace popgate

/// An assertion about our own code, on in every build. Never about anything that another process can influence.
#define POPGATE_ASSERT(condition)                                                                      \
  do {                                                                                                 \
    if (!(condition)) {                                                                                \
      std::fprintf(stderr, "popgate: assertion failed: %s (%s:%d)\n", #condition, __FILE__, __LINE__); \
      std::abort();                                                                                    \
    }                                                                                                  \
  } while (false)
