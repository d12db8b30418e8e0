// SPDX-License-Identifier: Apache-2.0
//
// Under a sanitizer by its own hook; otherwise by standing in front of glibc's allocator.
#include "tests/libclient/allocation_count.h"

#include <cerrno>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define POPGATE_SANITIZER_HOOKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define POPGATE_SANITIZER_HOOKS 1
#endif
#endif

namespace {

thread_local bool counting = false;
thread_local std::uint64_t allocations = 0;

void note_allocation() noexcept {
  if (counting) ++allocations;
}

}  // namespace

extern "C" {
#ifdef POPGATE_SANITIZER_HOOKS
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, std::size_t),
                                              void (*on_free)(const volatile void*));
#else
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  note_allocation();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  note_allocation();
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  note_allocation();
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  note_allocation();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  note_allocation();
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}
#endif
}

namespace popgate {

std::uint64_t allocations_during(const std::function<void()>& work) {
#ifdef POPGATE_SANITIZER_HOOKS
  static const int installed = __sanitizer_install_malloc_and_free_hooks(
      [](const volatile void*, std::size_t) { note_allocation(); }, [](const volatile void*) {});
  if (installed == 0) return UINT64_MAX;
#endif
  allocations = 0;
  counting = true;
  work();
  counting = false;
  return allocations;
}

}  // namespace popgate
