/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that embeds the library, in C11, as a user would write it: opened without a daemon everything passes, and
 * is counted. Exits with the number of the first line that is not so. */
#include <popgate/popgate.h>
#include <stddef.h>
#include <string.h>

#include "layout.h"

#define EXPECT(condition) \
  if (!(condition)) return __LINE__

static int no_header(void* context, const char* name, size_t name_bytes, const char** value, size_t* value_bytes) {
  (void)context, (void)name, (void)name_bytes, (void)value, (void)value_bytes;
  return 0;
}

int main(void) {
  popgate_client* gate = NULL;
  popgate_options options = POPGATE_OPTIONS_INIT;
  options.ring_slots = 1024;
  options.worker_name = "consumer";
  EXPECT(popgate_open("/nonexistent/workers.sock", &options, &gate) == POPGATE_OK);

  popgate_request request = POPGATE_REQUEST_INIT;
  request.method = "GET";
  request.method_bytes = 3;
  request.host = "example.com";
  request.host_bytes = 11;
  request.path = "/";
  request.path_bytes = 1;
  request.header = no_header;
  EXPECT(popgate_client_address(gate, "192.0.2.1", 9, NULL, 0, &request.client) == POPGATE_OK);
  EXPECT(request.client.bytes == 4);

  popgate_verdict verdict = POPGATE_VERDICT_INIT;
  EXPECT(popgate_check(gate, &request, &verdict) == POPGATE_PASS);
  EXPECT(verdict.blocked == 0 && verdict.rule[0] == '\0');
  EXPECT(popgate_check_key(gate, "rule", 4, "key", 3, NULL) == POPGATE_PASS);
  EXPECT(popgate_peek(gate, &request, NULL) == POPGATE_PASS);
  EXPECT(popgate_response(gate, &request, 200) == POPGATE_OK);
  EXPECT(popgate_tick(gate) == POPGATE_OK);
  EXPECT(popgate_file_descriptor(gate) == -1);

  popgate_address address;
  EXPECT(popgate_parse_address("::1", 3, &address) == POPGATE_OK && address.bytes == 16);

  popgate_statistics statistics = POPGATE_STATISTICS_INIT;
  EXPECT(popgate_get_statistics(gate, &statistics) == POPGATE_OK);
  EXPECT(statistics.checks == 2 && statistics.checks_detached == 2);
  EXPECT(strcmp(popgate_version(), "0.1.0") == 0);
  popgate_close(gate);
  return 0;
}
