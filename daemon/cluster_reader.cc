// SPDX-License-Identifier: Apache-2.0
#include "daemon/cluster_reader.h"

#include <charconv>
#include <unordered_map>

#include "daemon/tls_credentials.h"
#include "libclient/match/client_address.h"

namespace popgate {
namespace {

// A shard gets 40 points on the ring for each share of 1/N of the weight (libmemcached's weighted ketama, with 4 keys
// from each md5): below one point in 40 it would get none, and hold nothing.
constexpr std::uint64_t kRingPointsPerShard = 40;

/// Says when a value comes a second time, and where the first stands.
class Distinct {
 public:
  void check(const Section& section, std::string_view leaf, const std::string& value) {
    const auto [place, is_new] = lines_.try_emplace(value, section.value(leaf).line());
    if (!is_new) section.fault(leaf, "another one: line " + std::to_string(place->second) + " has this one already");
  }

 private:
  std::unordered_map<std::string, int> lines_;
};

/// A shard needs 1/(40 N) of the total weight. `places` are where each weight stands, or its entry.
void check_weights(const Section& section, const std::vector<ShardConfig>& shards,
                   const std::vector<YamlValue>& places) {
  std::uint64_t total = 0;
  for (const ShardConfig& shard : shards) total += shard.weight;
  const std::uint64_t parts = kRingPointsPerShard * shards.size();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].weight * parts >= total) continue;
    const FieldPath list = section.path("shards");
    const FieldPath entry{list.parent, list.name, i};
    section.reading().faults.add(places[i], FieldPath{&entry, "weight"}.text(), std::to_string(shards[i].weight),
                                 "at least " + std::to_string((total + parts - 1) / parts) + " of a total of " +
                                     std::to_string(total) + ": with less it would get no keys");
  }
}

/// `entries_are` names the options of an entry.
void read_shards(const Section& section, RingConfig& ring, std::string_view entries_are) {
  std::vector<YamlValue> entries;
  if (!section.read_list("shards", entries)) return;
  const FieldPath list = section.path("shards");
  std::vector<YamlValue> places;
  Distinct names;
  Distinct addresses;
  bool complete = true;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const FieldPath path{list.parent, list.name, i};
    const Section entry(section.reading(), path, entries[i], entries_are);
    ShardConfig shard;
    const bool named = entry.read("name", shard.name);
    if (named) names.check(entry, "name", shard.name);
    const bool placed = entry.read("address", shard.address);
    if (placed) addresses.check(entry, "address", shard.address.text());
    const bool weighed = entry.read("weight", shard.weight) || !entry.has("weight");
    complete = complete && named && placed && weighed;
    ring.shards.push_back(std::move(shard));
    places.push_back(entry.has("weight") ? entry.value("weight") : entries[i]);
  }
  if (complete) check_weights(section, ring.shards, places);
}

std::string names_and_weights(const RingConfig& ring) {
  std::string text;
  for (const ShardConfig& shard : ring.shards) text += shard.name + " " + std::to_string(shard.weight) + ",";
  return text;
}

void read_also_read(const Section& counters_section, CountersConfig& counters) {
  if (!counters_section.has("also_read")) return;
  const FieldPath path = counters_section.path("also_read");
  const Section section(counters_section.reading(), path, counters_section.value("also_read"), "counters.also_read");
  RingConfig ring;
  read_shards(section, ring, "counters.also_read.shards[]");
  Endpoint proxy;
  if (section.read("proxy", proxy)) ring.proxy = proxy;
  if (section.has("shards") && names_and_weights(ring) == names_and_weights(counters))
    section.fault("shards", "other names or weights than counters.shards: this is the same ring");
  counters.also_read = std::move(ring);
}

bool read_tcp(const Section& section, std::string_view leaf, Endpoint& out) {
  if (!section.read(leaf, out)) return false;
  if (out.unix_path.empty()) return true;
  section.fault(leaf, "host:port or [IPv6]:port: the mesh runs over TCP");
  return false;
}

/// An address in numbers that is not on loopback. Where a name leads is seen when it is looked up, at the start.
bool leads_off_the_host(const Endpoint& endpoint) {
  ClientAddress address;
  return parse_ip(endpoint.host, address) && !endpoint.is_loopback();
}

void read_tls(const Section& mesh_section, MeshConfig& mesh) {
  if (!mesh_section.has("tls")) return mesh_section.fault_missing("tls", allowed_text(mesh_section.option("tls")));
  const FieldPath path = mesh_section.path("tls");
  const Section section(mesh_section.reading(), path, mesh_section.value("tls"), "mesh.tls");
  MeshTlsConfig tls;
  (void)section.read_file("certificate", tls.files.certificate);
  (void)section.read_file("private_key", tls.files.private_key);
  (void)section.read_file("ca", tls.files.ca);
  mesh.tls = std::move(tls);
}

void read_peers(const Section& section, const Config& config, MeshConfig& mesh) {
  std::vector<YamlValue> entries;
  if (!section.read_list("peers", entries)) return;
  const FieldPath list = section.path("peers");
  Distinct nodes;
  Distinct addresses;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const FieldPath path{list.parent, list.name, i};
    const Section entry(section.reading(), path, entries[i], "mesh.peers[]");
    MemberConfig peer;
    if (entry.read("node", peer.node)) nodes.check(entry, "node", peer.node);
    if (peer.node == config.node && entry.has("node"))
      entry.fault("node", "the other members only: this node is " + config.node);
    if (read_tcp(entry, "address", peer.address)) {
      addresses.check(entry, "address", peer.address.text());
      if (!mesh.tls && leads_off_the_host(peer.address))
        entry.fault("address", "127.0.0.1:port or [::1]:port: without mesh.tls anybody could answer there");
      if (peer.address == mesh.listen) entry.fault("address", "another one: this is where this node listens");
    }
    mesh.peers.push_back(std::move(peer));
  }
}

/// `address/bits`, or an address alone. A mapped IPv4 range is the IPv4 range.
bool parse_range(std::string_view text, AddressRange& range) {
  const std::size_t slash = text.find('/');
  const std::string_view address = text.substr(0, slash);
  if (!parse_ip(address, range.base)) return false;
  const unsigned written_bits = address.find(':') == std::string_view::npos ? 32 : 128;
  unsigned bits = written_bits;
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return false;
  }
  const unsigned mapped = written_bits - range.base.bytes * 8U;  // 96 for a mapped address, else 0
  if (bits <= mapped || bits > written_bits) return false;       // all addresses there are: then nobody is a client
  range.prefix_bits = static_cast<std::uint8_t>(bits - mapped);
  return true;
}

bool same_octets(const ClientAddress& a, const ClientAddress& b) {
  for (std::size_t i = 0; i < a.bytes; ++i) {
    if (a.octets[i] != b.octets[i]) return false;
  }
  return true;
}

}  // namespace

void read_counters(const Section& top, Config& config) {
  if (!top.names("counters")) return;
  if (!top.has("counters")) return top.fault_missing("counters", allowed_text(top.option("counters")));
  const FieldPath path = top.path("counters");
  const Section section(top.reading(), path, top.value("counters"), "counters");
  CountersConfig counters;
  read_shards(section, counters, "counters.shards[]");
  Endpoint proxy;
  if (section.read("proxy", proxy)) counters.proxy = proxy;
  read_also_read(section, counters);
  (void)section.read("timeout", counters.timeout);
  (void)section.read("batches_in_flight", counters.batches_in_flight);
  (void)section.read("batch_keys_max", counters.batch_keys_max);
  config.counters = std::move(counters);
}

void read_mesh(const Section& top, Config& config) {
  if (!top.names("mesh")) return;
  if (!top.has("mesh")) return top.fault_missing("mesh", allowed_text(top.option("mesh")));
  const FieldPath path = top.path("mesh");
  const Section section(top.reading(), path, top.value("mesh"), "mesh");
  MeshConfig mesh;
  if (section.names("tls")) read_tls(section, mesh);
  if (read_tcp(section, "listen", mesh.listen) && !mesh.tls && !mesh.listen.is_loopback())
    section.fault("listen", "127.0.0.1:port or [::1]:port: without mesh.tls whoever reaches it could block any client");
  read_peers(section, config, mesh);
  config.mesh = std::move(mesh);
}

void load_mesh_files(const Section& top, Config& config) {
  if (!config.mesh || !config.mesh->tls) return;
  MeshTlsConfig& tls = *config.mesh->tls;
  auto credentials = TlsCredentials::load(tls.files, {config.pop, config.node});
  if (credentials) {
    tls.credentials = *std::move(credentials);
    return;
  }
  const FieldPath path = top.path("mesh");
  const Section section(top.reading(), path, top.value("mesh"), "mesh");
  top.reading().faults.add(section.value("tls"), section.path("tls").text(),
                           "files that cannot be used: " + credentials.error(), "");
}

void read_trusted_proxies(const Section& top, Config& config) {
  std::vector<YamlValue> entries;
  if (!top.has("trusted_proxies") || !top.read_list("trusted_proxies", entries)) return;
  const FieldPath list = top.path("trusted_proxies");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const FieldPath path{list.parent, list.name, i};
    AddressRange range;
    if (entries[i].kind() != YamlKind::kScalar || !parse_range(entries[i].text(), range)) {
      top.fault(path, entries[i], std::string(top.option("trusted_proxies").range));
      continue;
    }
    AddressRange cut = range;
    clear_after_prefix(cut.base, cut.prefix_bits);
    if (!same_octets(cut.base, range.base))
      top.fault(path, entries[i],
                "a range whose address ends with its prefix: no bits set after the first " +
                    std::to_string(range.prefix_bits));
    config.trusted_proxies.push_back(cut);
  }
}

}  // namespace popgate
