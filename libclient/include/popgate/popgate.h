/* SPDX-License-Identifier: Apache-2.0 */
/*
 * popgate.h - ask, on every request, whether a client is being mitigated, and count the request.
 *
 *     popgate_client* gate = NULL;
 *     if (popgate_open("/run/popgate/workers.sock", NULL, &gate) != POPGATE_OK) ...   // once per worker, after fork
 *
 *     popgate_request request = POPGATE_REQUEST_INIT;
 *     request.method = "GET";     request.method_bytes = 3;
 *     request.host = host;        request.host_bytes = strlen(host);
 *     request.path = path;        request.path_bytes = strlen(path);
 *     popgate_client_address(gate, peer_text, peer_bytes, forwarded_for, forwarded_for_bytes, &request.client);
 *     popgate_verdict verdict = POPGATE_VERDICT_INIT;
 *     if (popgate_check(gate, &request, &verdict) == POPGATE_BLOCK) ...     // 429, Retry-After: verdict.retry_after_s
 *
 *     popgate_tick(gate);         // every 100 ms or so, from the worker's own timer: (re)attaches to the daemon
 *     popgate_close(gate);
 *
 * Conventions
 *  1. A popgate_client belongs to one thread at a time: each worker process and each worker thread opens its own, after
 *     fork. Different clients never share anything that is written, so any number may be used side by side.
 *  2. popgate_check and popgate_check_key make no system call, take no lock, allocate nothing and never wait. Whatever
 *     is wrong (no daemon, full ring, unreadable rules) they let the request pass and count that they did.
 *  3. popgate_open, popgate_tick and popgate_close may make system calls; none blocks.
 *  4. Strings are pointer and byte count, not terminated; they are only read during the call. A null pointer with a
 *     count of 0 is an empty string.
 *  5. Structs begin with their size, set by the *_INIT macros. Fields are only ever added at the end; nothing is
 *     removed. A size that no release has had is refused with POPGATE_INVALID (popgate_check then passes the request).
 *  6. Nothing here aborts, throws or writes to a log. Times end in their unit.
 */
#ifndef POPGATE_POPGATE_H
#define POPGATE_POPGATE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define POPGATE_API __attribute__((visibility("default")))
#else
#define POPGATE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define POPGATE_VERSION_MAJOR 0
#define POPGATE_VERSION_MINOR 1
#define POPGATE_VERSION_PATCH 0

typedef struct popgate_client popgate_client;

/* What a call returns. Verdicts are >= 0, errors < 0. */
typedef enum popgate_result {
  POPGATE_OK = 0,
  POPGATE_PASS = 0,       /* let the request through */
  POPGATE_BLOCK = 1,      /* the client is being mitigated by a rule whose action is `block` */
  POPGATE_INVALID = -1,   /* an argument is null, malformed or of an unknown size */
  POPGATE_NO_MEMORY = -2, /* only from popgate_open */
  POPGATE_SYSTEM = -3     /* only from popgate_open: errno says what */
} popgate_result;

/* A client address in network byte order. bytes: 4, 16, or 0 when it is not known. An IPv4 address mapped into IPv6
 * counts as the IPv4 address. */
typedef struct popgate_address {
  uint8_t octets[16];
  uint8_t bytes;
} popgate_address;

/* Finds one request header. `name` is lower case. Returns 1 and sets value and value_bytes when the request has the
 * header, 0 when it has not. Called only when a rule that matches the request is keyed by a header or a cookie. */
typedef int (*popgate_header_function)(void* context, const char* name, size_t name_bytes, const char** value,
                                       size_t* value_bytes);

typedef struct popgate_request {
  size_t struct_bytes;
  const char* method;
  size_t method_bytes;
  const char* host; /* as in the Host header; port, case and a trailing dot do not matter */
  size_t host_bytes;
  const char* path; /* as in the request line; what follows `?` does not matter */
  size_t path_bytes;
  popgate_address client;
  popgate_header_function header; /* may be null */
  void* header_context;
} popgate_request;

#define POPGATE_REQUEST_INIT \
  { sizeof(popgate_request), NULL, 0, NULL, 0, NULL, 0, {{0}, 0}, NULL, NULL }

#define POPGATE_RULE_NAME_BYTES 64 /* including the terminating zero */
#define POPGATE_KEY_TEXT_BYTES 33  /* including the terminating zero */

typedef struct popgate_verdict {
  size_t struct_bytes;
  int32_t blocked;        /* 1: block; 0: pass */
  int32_t would_block;    /* 1: a rule whose action is `log`, or a rule or an operator's block while blocking is turned
                             off (`popgatectl enforce off`, a fuse), would have blocked; independent of blocked */
  uint32_t matched;       /* number of rules the request fell under */
  uint32_t retry_after_s; /* when blocked or would_block: whole seconds, rounded up, until the mitigation ends */
  uint64_t limit;         /* of the rule below */
  uint64_t window_ms;     /* of the rule below */
  char rule[POPGATE_RULE_NAME_BYTES]; /* the rule that blocks (or would): the one that ends last; "" when none */
  char key[POPGATE_KEY_TEXT_BYTES];   /* the key it blocks, for `popgatectl explain`; also fit to show to the client */
} popgate_verdict;

#define POPGATE_VERDICT_INIT                              \
  {                                                       \
    sizeof(popgate_verdict), 0, 0, 0, 0, 0, 0, {0}, { 0 } \
  }

typedef struct popgate_options {
  size_t struct_bytes;
  uint32_t ring_slots;     /* hits that wait for the daemon at most: 1024 to 1048576, a power of two; 0: 65536, 2 MiB */
  uint32_t tick_thread;    /* 1: a helper thread calls popgate_tick every 100 ms; the caller then must not */
  const char* worker_name; /* shown by `popgatectl status`; may be null; cut after 31 bytes */
} popgate_options;

#define POPGATE_OPTIONS_INIT \
  { sizeof(popgate_options), 0, 0, NULL }

/* Counters of one client since popgate_open; all only rise. */
typedef struct popgate_statistics {
  size_t struct_bytes;
  uint64_t checks;            /* calls of popgate_check and popgate_check_key */
  uint64_t checks_detached;   /* of these, made without a daemon's table and rules: passed */
  uint64_t checks_invalid;    /* of these, refused arguments: passed */
  uint64_t blocked;           /* verdicts `block` */
  uint64_t would_block;       /* verdicts `pass` with would_block set */
  uint64_t hits_recorded;     /* sum of the costs of hits that entered the ring */
  uint64_t hits_dropped;      /* sum of the costs of hits that found the ring full */
  uint64_t matches_truncated; /* requests that fell under more rules than one request may */
  uint64_t attaches;          /* times a daemon was attached */
  uint64_t refused;           /* times what a daemon sent was refused (foreign version, damaged rules or table) */
  uint64_t attached;          /* 1 while a daemon's table and rules are mapped and its socket is open */
} popgate_statistics;

#define POPGATE_STATISTICS_INIT \
  { sizeof(popgate_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Opens a client for the daemon whose worker socket is `socket_path` and tries to attach at once. Succeeds also when no
 * daemon runs yet: then everything passes until popgate_tick finds one. `options` may be null.
 * Returns POPGATE_OK; POPGATE_INVALID (null argument, path too long for a socket, bad option); POPGATE_NO_MEMORY;
 * POPGATE_SYSTEM. On an error *client is null. Cost: a few system calls and a ring of 32 bytes a slot. */
POPGATE_API popgate_result popgate_open(const char* socket_path, const popgate_options* options,
                                        popgate_client** client);

/* Closes the client; null is allowed. Hits still in the ring are handed to the daemon as long as it runs. */
POPGATE_API void popgate_close(popgate_client* client);

/* (Re)attaches to the daemon, takes over new rules, notices a daemon that went away. Call it about every 100 ms from
 * the thread that owns the client. Never blocks. Returns POPGATE_OK, or POPGATE_INVALID for a null client. */
POPGATE_API popgate_result popgate_tick(popgate_client* client);

/* The descriptor of the connection to the daemon, for an event loop that wants to call popgate_tick as soon as there is
 * something to read; -1 while there is none. It changes; ask again after each popgate_tick. */
POPGATE_API int popgate_file_descriptor(const popgate_client* client);

/* Matches the request against the rules, looks every key up, records the hits, and fills in `verdict` (may be null).
 * A blocked request is recorded only for rules that count `all`. Returns POPGATE_BLOCK or POPGATE_PASS; never an error:
 * a bad argument passes and is counted. Cost: tens of nanoseconds for each rule that the request falls under. */
POPGATE_API popgate_result popgate_check(popgate_client* client, const popgate_request* request,
                                         popgate_verdict* verdict);

/* Like popgate_check for a caller that matches requests itself: `rule` is the name of a rule, `key` the bytes that
 * stand for the identity (they are hashed, any length, in a name space apart from keys that rules build). A rule of
 * unknown name passes and is counted as invalid. */
POPGATE_API popgate_result popgate_check_key(popgate_client* client, const char* rule, size_t rule_bytes,
                                             const void* key, size_t key_bytes, popgate_verdict* verdict);

/* As popgate_check, but records nothing: for looking on. */
POPGATE_API popgate_result popgate_peek(popgate_client* client, const popgate_request* request,
                                        popgate_verdict* verdict);

/* For rules that count by response: tells how the request ended. Reserved: no rule can count by response yet, so the
 * call checks its arguments and records nothing. Returns POPGATE_OK or POPGATE_INVALID. */
POPGATE_API popgate_result popgate_response(popgate_client* client, const popgate_request* request, int status);

/* Reads a textual IPv4 or IPv6 address, with or without brackets, port and zone. POPGATE_OK or POPGATE_INVALID. */
POPGATE_API popgate_result popgate_parse_address(const char* text, size_t text_bytes, popgate_address* address);

/* The client's address behind the trusted proxies of the daemon's configuration: the socket's peer, or, when the peer
 * is a trusted proxy, the right-most address of X-Forwarded-For that is not. An unreadable element ends the walk at the
 * last trusted hop. `forwarded_for` may be null. POPGATE_OK, or POPGATE_INVALID when `peer` is not an address (then
 * address->bytes is 0). */
POPGATE_API popgate_result popgate_client_address(const popgate_client* client, const char* peer, size_t peer_bytes,
                                                  const char* forwarded_for, size_t forwarded_for_bytes,
                                                  popgate_address* address);

/* Fills in `statistics`. POPGATE_OK or POPGATE_INVALID. Any thread may call it. */
POPGATE_API popgate_result popgate_get_statistics(const popgate_client* client, popgate_statistics* statistics);

/* "0.1.0"; lives for ever. */
POPGATE_API const char* popgate_version(void);

#ifdef __cplusplus
}
#endif

#endif /* POPGATE_POPGATE_H */
