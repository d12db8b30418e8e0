// SPDX-License-Identifier: Apache-2.0
#include "daemon/config_options.h"

#include <algorithm>

#include "daemon/config.h"
#include "daemon/duration.h"
#include "libclient/attach_format.h"
#include "libclient/check/table_format.h"
#include "libclient/match/rules_format.h"
#include "libclient/record/hit_ring_format.h"

namespace popgate {
namespace {

constexpr std::int64_t kMillisecond = 1000;
constexpr std::int64_t kSecond = 1000 * kMillisecond;
constexpr std::int64_t kDay = 86400 * kSecond;
constexpr auto kEntriesMax = static_cast<std::int64_t>(kTableEntriesMax);  // a table of 1 GiB
constexpr std::int64_t kKeysMax = 1 << 24;
constexpr std::int64_t kLimitMax = 1'000'000'000'000;
constexpr std::int64_t kMitigationMaxUs = std::chrono::microseconds(kMitigationMax).count();

using enum OptionKind;

// clang-format off
constexpr Option kOptions[] = {
    {"node", kName, "node", "", 0, 0, "", "The name of this node, unlike every other of the PoP."},
    {"pop", kName, "pop", "", 0, 0, "", "The name of the PoP, the same on all its nodes; other PoPs' nodes are not let in."},
    {"run_dir", kPath, "/run/popgate", "", 0, 0, "", "Sockets, mitigation table, compiled rules and ledger; must be on tmpfs, and its own for each node."},
    {"state_dir", kPath, "/var/lib/popgate", "", 0, 0, "", "What outlives a reboot: the record of mitigations and, on a PoP of one node, the hash secret."},
    {"worker_socket", kPath, "run_dir/workers.sock", "", 0, 0, "", "The Unix socket that workers open."},
    {"worker_socket_mode", kMode, "0600", "", 0, 0, "0600 to 0666", "Who may open it: workers should run as another user than the daemon, so give them a group with `worker_socket_group`."},
    {"worker_socket_group", kName, "", "", 0, 0, "", "The group of the worker socket, by name or number; `worker_socket_mode` is then 0660 unless it is given. Root, the daemon's user and who the mode lets in may connect; the kernel is asked for each connection."},
    {"admin_socket", kPath, "run_dir/admin.sock", "", 0, 0, "", "The Unix socket of popgatectl, of mode 0600, or 0660 with `admin_socket_group`."},
    {"admin_socket_group", kName, "", "", 0, 0, "", "A group whose members may also give orders to the daemon, by name or number."},
    {"log_level", kChoice, "info", "", 0, 0, "trace, debug, info, warning, error, critical, off", "The least that is logged."},
    {"flush_interval", kDuration, "50ms", "time", 5 * kMillisecond, kSecond, "", "How long hits are added up before they are sent to the counters."},
    {"clock_tolerance", kDuration, "20ms", "time", 5 * kMillisecond, 10 * kSecond, "", "The largest difference between two nodes' clocks that counting allows for; a node beyond it stops counting and warns."},
    {"table_entries", kInteger, "262144", "entries", 1024, kEntriesMax, "a power of two", "Room in the mitigation table, 32 bytes an entry; beyond it new mitigations are refused and counted."},
    {"keys_max", kInteger, "262144", "keys", 1024, kKeysMax, "", "Keys whose windows the daemon holds; beyond it the coldest make room."},
    {"workers_max", kInteger, "256", "workers", 1, kWorkersMax, "", "Workers attached at once; beyond it further ones are refused."},
    {"hash_secret_file", kFile, "", "", 0, 0, "", "A file of mode 0600 with 32 hexadecimal digits, the same on all nodes; required with `counters` or `mesh`; `popgatectl secret new` makes one. Without it the daemon makes `state_dir/hash.secret` at its first start. A relative path starts at this file's folder."},
    {"hash_secret_next_file", kFile, "", "", 0, 0, "", "While the secret is changed: the file of the next one. Keys are checked and counted under both. docs/operations.md has the steps."},
    {"hash_secret_former_file", kFile, "", "", 0, 0, "", "While the secret is changed: the file of the former one. Keys are still checked under it, and no longer counted. At most one of both."},
    {"trusted_proxies", kList, "", "ranges", 0, static_cast<std::int64_t>(kTrustedRangesMax), "`10.0.0.0/8`, `2001:db8::/32` or a single address", "Proxies whose X-Forwarded-For is believed."},
    {"counters", kSection, "", "", 0, 0, "", "Where the PoP counts: a cluster of memcached. Absent: in the daemon itself, for a PoP of one node."},
    {"counters.shards", kList, kRequired, "shards", 1, static_cast<std::int64_t>(kShardsMax), "", "The memcached servers."},
    {"counters.shards[].name", kName, kRequired, "", 0, 0, "", "What places the shard on the ring; its address may change, its name must not."},
    {"counters.shards[].address", kEndpoint, kRequired, "", 0, 0, "", "Where it listens."},
    {"counters.shards[].weight", kInteger, "1", "", 1, 1000, "", "Its share of the keys; a share below 1/(40 × shards) would get none and is refused."},
    {"counters.proxy", kEndpoint, "", "", 0, 0, "", "twemproxy in front of the shards. Absent: the daemon talks to them itself."},
    {"counters.also_read", kSection, "", "", 0, 0, "", "Another ring whose totals are read too, and never added to: while the shards change (docs/operations.md). Absent: one ring."},
    {"counters.also_read.shards", kList, kRequired, "shards", 1, static_cast<std::int64_t>(kShardsMax), "", "Its memcached servers."},
    {"counters.also_read.shards[].name", kName, kRequired, "", 0, 0, "", "As in `counters.shards`."},
    {"counters.also_read.shards[].address", kEndpoint, kRequired, "", 0, 0, "", "As in `counters.shards`."},
    {"counters.also_read.shards[].weight", kInteger, "1", "", 1, 1000, "", "As in `counters.shards`."},
    {"counters.also_read.proxy", kEndpoint, "", "", 0, 0, "", "twemproxy in front of them. Absent: the daemon reads them itself."},
    {"counters.timeout", kDuration, "400ms", "time", 10 * kMillisecond, 5 * kSecond, "", "A reply later than this ends the connection; what was in flight counts as uncertain."},
    {"counters.batches_in_flight", kInteger, "4", "batches", 1, 64, "", "Batches that wait for their replies on one connection."},
    {"counters.batch_keys_max", kInteger, "1000", "keys", 1, 10'000, "", "Keys in one batch."},
    {"mesh", kSection, "", "", 0, 0, "", "The other nodes of the PoP. Absent: a PoP of one node."},
    {"mesh.listen", kEndpoint, kRequired, "", 0, 0, "on loopback, unless there is `mesh.tls`", "Where this node listens for its peers."},
    {"mesh.peers", kList, kRequired, "peers", 1, static_cast<std::int64_t>(kMembersMax) - 1, "", "Every other member."},
    {"mesh.peers[].node", kName, kRequired, "", 0, 0, "", "Its `node`."},
    {"mesh.peers[].address", kEndpoint, kRequired, "", 0, 0, "on loopback, unless there is `mesh.tls`", "Its `mesh.listen` as seen from here."},
    {"mesh.tls", kSection, "", "", 0, 0, "", "TLS 1.3 between the nodes, both sides with a certificate. Absent: plain text, on loopback only. Its three files are read again at a reload."},
    {"mesh.tls.certificate", kFile, kRequired, "", 0, 0, "", "This node's certificate in PEM form, for client and server, with the name URI:popgate://POP/NODE; after it what lies between it and the CA. A relative path starts at this file's folder."},
    {"mesh.tls.private_key", kFile, kRequired, "", 0, 0, "", "The certificate's private key in PEM form, without a passphrase; RSA of 2048 bits or more, EC P-256, P-384 or P-521, Ed25519 or Ed448; mode 0600 or 0400."},
    {"mesh.tls.ca", kFile, kRequired, "", 0, 0, "", "The CAs whose certificates are believed, in PEM form; both while one replaces another."},
    {"rules", kList, "", "rules", 0, static_cast<std::int64_t>(kRuleNumbersMax) - 1, "", "The rules, in order."},
    {"rules[].name", kName, kRequired, "", 0, 0, "", "Its name, unlike every other; a new name is a new rule with new counters."},
    {"rules[].match", kSection, "", "", 0, 0, "", "Which requests it counts; all that is given must hold. Absent: every request."},
    {"rules[].match.host", kText, "", "", 0, 0, "`www.example.com`, `*.example.com`, `192.0.2.1` or `[2001:db8::1]`, lower case, without port", "The request's host; `*.` stands for any name below, but not for the name itself."},
    {"rules[].match.path", kText, "", "", 0, 0, "1 to 1024 bytes that begin with `/`, without query", "The request's path: exactly this one, or, with `*` or `?` in it, a glob. Or one of the three fields below."},
    {"rules[].match.path.exact", kText, "", "", 0, 0, "1 to 1024 bytes that begin with `/`, without query", "Exactly this path, whatever characters it has."},
    {"rules[].match.path.prefix", kText, "", "", 0, 0, "1 to 1024 bytes that begin with `/`, without query", "Every path that begins with these bytes; end it in `/` to mean a folder."},
    {"rules[].match.path.glob", kText, "", "", 0, 0, "1 to 1024 bytes that begin with `/`, at most 63 of them literal between the first and the last wildcard", "`*` is any run without `/`, `**` any run, `?` one byte that is not `/`."},
    {"rules[].match.method", kText, "", "", 0, 0, "a method, or a list of up to 16", "The request's method."},
    {"rules[].key", kList, kRequired, "parts", 1, static_cast<std::int64_t>(kKeyPartsMax), "each `client_ip`, `host`, `path`, `method`, `{header: NAME}`, `{cookie: NAME}` or `{client_ip: {v4_prefix: 24}}`", "The identity that is counted: requests alike in all parts share a counter. A part that a request lacks is its own case, unlike an empty one."},
    {"rules[].key[].client_ip", kSection, "", "", 0, 0, "", "The client's address, cut to a prefix."},
    {"rules[].key[].client_ip.v4_prefix", kInteger, "32", "bits", 1, 32, "", "Of an IPv4 address."},
    {"rules[].key[].client_ip.v6_prefix", kInteger, "64", "bits", 1, 128, "", "Of an IPv6 address; one client often has a whole /64."},
    {"rules[].key[].header", kText, "", "", 0, 0, "1 to 64 characters of a header's name", "The value of a request header."},
    {"rules[].key[].cookie", kText, "", "", 0, 0, "1 to 64 characters of a cookie's name", "The value of a cookie."},
    {"rules[].limit", kInteger, kRequired, "hits", 1, kLimitMax, "", "So many hits pass in a window; the next is over."},
    {"rules[].window", kDuration, kRequired, "time", 20 * kMillisecond, 30 * kDay, "at least 4 × clock_tolerance × slots, and short enough that memcached can hold its counters (30 days in all)", "The sliding window."},
    {"rules[].slots", kInteger, "6", "slots", 1, static_cast<std::int64_t>(kSlotsMax), "", "Parts into which the window is cut; more are more exact and cost more reads."},
    {"rules[].mitigate", kDuration, kRequired, "time", 0, kMitigationMaxUs, "0, or at least 100ms", "How long a client over the limit is mitigated; 0: only until its rate is back at the limit."},
    {"rules[].action", kChoice, "block", "", 0, 0, "block, log", "What a mitigation does; `log` only says what it would do."},
    {"rules[].count", kChoice, "allowed", "", 0, 0, "allowed, all", "Whether requests that are blocked count too."},
    {"rules[].cost", kInteger, "1", "hits", 1, static_cast<std::int64_t>(kHitCostMax), "at most the limit", "Hits that one request counts."},
    {"rules[].policy", kChoice, "estimate", "", 0, 0, "estimate, certain, cautious", "Which figure is held against the limit: `certain` the lower bound, so that nobody within the limit is mitigated; `cautious` the upper bound, or the estimate while that is unknown, so that as good as nobody over it is missed. With `mitigate: 0` always the estimate."},
    {"rules[].on_counter_failure", kChoice, "local", "", 0, 0, "local, open, closed; not closed with `policy: certain`", "What to do about keys whose shard cannot be counted on: `local` judges this node's own hits, against its share of the limit (against the whole limit with `policy: certain`); `open` mitigates nobody new; `closed` mitigates whoever comes, until the shard is back."},
    {"rules[].max_blocked_share", kInteger, "", "percent", 1, 99, "on at most 64 rules", "The rule's fuse: when it blocks, or would block, more than this share of all requests of the PoP over 10 s, it is turned off on every node (it then only logs) until an operator says `popgatectl enforce on RULE --pop`. Without it, never."},
    {"rules[].enabled", kBoolean, "true", "", 0, 0, "", "false: the rule is read and checked, and does nothing."},
};
// clang-format on

std::string number_range(const Option& option) {
  return std::to_string(option.least) + " to " + std::to_string(option.most);
}

std::string duration_range(const Option& option) {
  return duration_text(std::chrono::microseconds(option.least)) + " to " +
         duration_text(std::chrono::microseconds(option.most));
}

std::string with_range(std::string text, const Option& option) {
  if (option.range.empty()) return text;
  return text.append(", ").append(option.range);
}

std::string_view type_text(OptionKind kind) {
  switch (kind) {
    case kSection:
      return "section";
    case kList:
      return "list";
    case kName:
      return "name";
    case kText:
      return "text";
    case kPath:
      return "path";
    case kFile:
      return "file";
    case kInteger:
      return "whole number";
    case kDuration:
      return "duration";
    case kChoice:
      return "word";
    case kMode:
      return "octal mode";
    case kEndpoint:
      return "address";
    case kBoolean:
      return "true or false";
  }
  return "";
}

/// The range column of the manual.
std::string range_text(const Option& option) {
  switch (option.kind) {
    case kInteger:
      return with_range(number_range(option), option);
    case kDuration:
      return with_range(duration_range(option), option);
    case kList:
      return with_range(number_range(option), option);
    default:
      return std::string(option.range);
  }
}

std::string escaped(std::string text) {
  for (std::size_t i = text.find('|'); i != std::string::npos; i = text.find('|', i + 2)) text.insert(i, 1, '\\');
  return text;
}

}  // namespace

std::span<const Option> options() { return kOptions; }

std::string allowed_text(const Option& option) {
  switch (option.kind) {
    case kSection:
      return "a map of fields";
    case kList:
      return with_range("a list of " + number_range(option) + " " + std::string(option.unit), option);
    case kName:
      return "1 to 63 letters, digits, '.', '_' and '-', a letter or digit first";
    case kPath:
      return "an absolute path";
    case kFile:
      return "the path of a file";
    case kInteger:
      return with_range("a whole number from " + number_range(option), option);
    case kDuration:
      return with_range("a number with its unit (ms, s, m, h, d), " + duration_range(option), option);
    case kMode:
      return "four octal digits that begin with 0, " + std::string(option.range);
    case kEndpoint:
      return with_range("host:port, [IPv6]:port or the absolute path of a Unix socket", option);
    case kBoolean:
      return "true or false";
    case kText:
    case kChoice:
      return std::string(option.range);
  }
  return "";
}

std::string options_reference() {
  std::string table = "| option | type | default | unit | range | meaning |\n| --- | --- | --- | --- | --- | --- |\n";
  for (const Option& option : options()) {
    const bool given = !option.standard.empty() && option.standard != kRequired;
    const std::string standard = given ? "`" + std::string(option.standard) + "`" : std::string(option.standard);
    table += "| `" + std::string(option.name) + "` | " + std::string(type_text(option.kind)) + " | " + standard +
             " | " + std::string(option.unit) + " | " + escaped(range_text(option)) + " | " +
             escaped(std::string(option.meaning)) + " |\n";
  }
  return table;
}

bool is_plain_name(std::string_view text) {
  const auto letter_or_digit = [](char c) {
    const char lower = static_cast<char>(c | 0x20);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9');
  };
  if (text.empty() || text.size() > kRuleNameBytesMax || !letter_or_digit(text.front())) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter_or_digit(c) || c == '.' || c == '_' || c == '-'; });
}

}  // namespace popgate
