/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout that programs compiled against release 0.1 rely on: numbers, not what the compiler says today. Included by
 * a C11 and a C++20 translation unit. Fields may be added at the end; no number here ever changes, except that a
 * struct's size gets a second allowed value. */
#ifndef POPGATE_TESTS_ABI_LAYOUT_H
#define POPGATE_TESTS_ABI_LAYOUT_H

#include <popgate/popgate.h>
#include <stddef.h>

#ifdef __cplusplus
#define POPGATE_TEST_IS(expression, value) static_assert((expression) == (value), #expression)
#else
#define POPGATE_TEST_IS(expression, value) _Static_assert((expression) == (value), #expression)
#endif

POPGATE_TEST_IS(POPGATE_OK, 0);
POPGATE_TEST_IS(POPGATE_PASS, 0);
POPGATE_TEST_IS(POPGATE_BLOCK, 1);
POPGATE_TEST_IS(POPGATE_INVALID, -1);
POPGATE_TEST_IS(POPGATE_NO_MEMORY, -2);
POPGATE_TEST_IS(POPGATE_SYSTEM, -3);
POPGATE_TEST_IS(sizeof(popgate_result), 4);

POPGATE_TEST_IS(sizeof(popgate_address), 17);
POPGATE_TEST_IS(offsetof(popgate_address, bytes), 16);

POPGATE_TEST_IS(offsetof(popgate_request, struct_bytes), 0);
POPGATE_TEST_IS(offsetof(popgate_request, method), 8);
POPGATE_TEST_IS(offsetof(popgate_request, method_bytes), 16);
POPGATE_TEST_IS(offsetof(popgate_request, host), 24);
POPGATE_TEST_IS(offsetof(popgate_request, host_bytes), 32);
POPGATE_TEST_IS(offsetof(popgate_request, path), 40);
POPGATE_TEST_IS(offsetof(popgate_request, path_bytes), 48);
POPGATE_TEST_IS(offsetof(popgate_request, client), 56);
POPGATE_TEST_IS(offsetof(popgate_request, header), 80);
POPGATE_TEST_IS(offsetof(popgate_request, header_context), 88);
POPGATE_TEST_IS(sizeof(popgate_request), 96);

POPGATE_TEST_IS(offsetof(popgate_verdict, blocked), 8);
POPGATE_TEST_IS(offsetof(popgate_verdict, would_block), 12);
POPGATE_TEST_IS(offsetof(popgate_verdict, matched), 16);
POPGATE_TEST_IS(offsetof(popgate_verdict, retry_after_s), 20);
POPGATE_TEST_IS(offsetof(popgate_verdict, limit), 24);
POPGATE_TEST_IS(offsetof(popgate_verdict, window_ms), 32);
POPGATE_TEST_IS(offsetof(popgate_verdict, rule), 40);
POPGATE_TEST_IS(offsetof(popgate_verdict, key), 104);
POPGATE_TEST_IS(sizeof(popgate_verdict), 144);

POPGATE_TEST_IS(offsetof(popgate_options, ring_slots), 8);
POPGATE_TEST_IS(offsetof(popgate_options, tick_thread), 12);
POPGATE_TEST_IS(offsetof(popgate_options, worker_name), 16);
POPGATE_TEST_IS(sizeof(popgate_options), 24);

POPGATE_TEST_IS(offsetof(popgate_statistics, checks), 8);
POPGATE_TEST_IS(offsetof(popgate_statistics, hits_recorded), 48);
POPGATE_TEST_IS(offsetof(popgate_statistics, attached), 88);
POPGATE_TEST_IS(sizeof(popgate_statistics), 96);

#endif
