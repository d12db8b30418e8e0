// SPDX-License-Identifier: Apache-2.0
#include "daemon/match_reader.h"

#include <algorithm>
#include <utility>

#include "libclient/match/client_address.h"
#include "libclient/match/glob.h"
#include "libclient/match/request_host.h"
#include "libclient/match/request_target.h"
#include "libclient/match/rules_format.h"

namespace popgate {
namespace {

constexpr std::size_t kHeaderNameBytesMax = 64;  // longer ones would go into keys by their hash
constexpr std::size_t kMethodNameBytesMax = 32;

bool is_letter(char c) {
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'z';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// RFC 9110's token: names of methods, headers and cookies.
bool is_token(std::string_view text, std::size_t bytes_max) {
  return !text.empty() && text.size() <= bytes_max && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || is_digit(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
  return result;
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(c >= 'a' && c <= 'z' ? c & ~0x20 : c);
  return result;
}

bool is_host(std::string_view host) {
  ClientAddress address;
  if (host.starts_with('[')) {
    return host.ends_with(']') && host.find(':') != std::string_view::npos &&
           parse_ip(host.substr(1, host.size() - 2), address);
  }
  const bool letters = std::all_of(
      host.begin(), host.end(), [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_'; });
  return letters && !host.empty() && host.size() <= kRuleHostBytesMax && host.front() != '.' &&
         host.find("..") == std::string_view::npos;
}

void read_host(const Section& section, MatchSpec& match) {
  std::string_view text;
  if (!section.read_scalar("host", text)) return;
  const bool suffix = text.starts_with("*.");
  const std::string_view name = suffix ? text.substr(2) : text;
  HostBuffer buffer;
  const std::string_view normal = normal_host(name, buffer);
  if (!is_host(normal) || (suffix && normal.starts_with('['))) {
    section.fault("host", std::string(section.option("host").range) + "; names in other scripts in their xn-- form");
  } else if (normal != name) {
    section.fault("host", (suffix ? "*." : "") + std::string(normal) + ", as requests are matched");
  } else {
    match.host_match = suffix ? HostMatch::kSuffix : HostMatch::kExact;
    match.host = suffix ? "." + std::string(name) : std::string(name);
  }
}

/// What the matcher makes of such a path. A glob's `?` must not end it, so another byte stands in for it meanwhile.
std::string as_matched(std::string_view path, bool glob) {
  constexpr char kStandIn = 1;
  std::string text(path);
  if (glob) std::replace(text.begin(), text.end(), '?', kStandIn);
  PathBuffer buffer;
  std::string normal(normal_path(text, buffer));
  if (glob) std::replace(normal.begin(), normal.end(), kStandIn, '?');
  return normal;
}

struct PathField {
  std::string_view leaf;
  PathMatch match;
};
constexpr PathField kPathFields[] = {
    {"exact", PathMatch::kExact}, {"prefix", PathMatch::kPrefix}, {"glob", PathMatch::kGlob}};

/// `section`.`leaf` holds the text of the path.
void check_path(const Section& section, std::string_view leaf, PathMatch kind, MatchSpec& match) {
  std::string_view text;
  if (!section.read_scalar(leaf, text)) return;
  const bool glob = kind == PathMatch::kGlob;
  GlobShape shape;
  const bool right = text.starts_with('/') && text.size() <= kRulePathBytesMax &&
                     (glob ? text.find('#') : text.find_first_of("?#")) == std::string_view::npos &&
                     (!glob || read_glob(text, shape));
  if (!right) return section.fault(leaf, std::string(section.option(leaf).range));
  if (const std::string normal = as_matched(text, glob); normal != text)
    return section.fault(leaf, normal + ", as requests are matched");
  match.path_match = kind;
  match.path = text;
}

void read_path(const Section& section, MatchSpec& match) {
  const YamlValue value = section.value("path");
  if (!value.exists()) return;
  if (value.kind() != YamlKind::kMap) {
    const bool glob = value.text().find_first_of("*?") != std::string_view::npos;
    return check_path(section, "path", glob ? PathMatch::kGlob : PathMatch::kExact, match);
  }
  const FieldPath path = section.path("path");
  const Section fields(section.reading(), path, value, "rules[].match.path");
  int given = 0;
  for (const PathField& field : kPathFields) {
    if (!fields.has(field.leaf)) continue;
    ++given;
    check_path(fields, field.leaf, field.match, match);
  }
  if (given != 1) section.fault("path", "one of exact, prefix and glob");
}

void read_methods(const Section& section, MatchSpec& match) {
  const YamlValue value = section.value("method");
  if (!value.exists()) return;
  const bool list = value.kind() == YamlKind::kList;
  if (list && (value.count() == 0 || value.count() > kRuleMethodsMax))
    return section.fault("method", "1 to 16 methods");
  for (YamlValue entry = list ? value.first() : value; entry.exists(); entry = list ? entry.next() : YamlValue()) {
    const std::string method = upper(entry.text());
    const bool twice = std::find(match.methods.begin(), match.methods.end(), method) != match.methods.end();
    if (twice || !is_token(method, kMethodNameBytesMax))
      section.fault(section.path("method"), entry, twice ? "each method once" : "a method, such as GET or POST");
    else
      match.methods.push_back(method);
  }
  // Their order means nothing, and must not change the rule's counters.
  std::sort(match.methods.begin(), match.methods.end());
}

class KeyReader {
 public:
  KeyReader(const Section& rule, std::vector<KeyPartSpec>& key) : rule_(rule), key_(key) {}

  void read(const YamlValue& entry, std::size_t index) {
    const FieldPath list = rule_.path("key");
    const FieldPath path{list.parent, list.name, index};
    KeyPartSpec part;
    const bool right = entry.kind() == YamlKind::kMap ? read_map(entry, path, part) : read_word(entry, path, part);
    if (!right) return;
    const bool twice = std::any_of(key_.begin(), key_.end(), [&](const KeyPartSpec& other) {
      return other.type == part.type && other.name == part.name;
    });
    if (twice) return rule_.fault(path, entry, "each part once");
    key_.push_back(std::move(part));
  }

 private:
  bool read_word(const YamlValue& entry, const FieldPath& path, KeyPartSpec& part) const {
    static constexpr std::pair<std::string_view, KeyPart> kWords[] = {{"client_ip", KeyPart::kClientIp},
                                                                      {"host", KeyPart::kHost},
                                                                      {"path", KeyPart::kPath},
                                                                      {"method", KeyPart::kMethod}};
    for (const auto& [word, type] : kWords) {
      if (entry.kind() != YamlKind::kScalar || entry.text() != word) continue;
      part.type = type;
      return true;
    }
    rule_.fault(path, entry,
                "client_ip, host, path, method, {header: NAME}, {cookie: NAME} or {client_ip: {v4_prefix: 24}}");
    return false;
  }

  bool read_map(const YamlValue& entry, const FieldPath& path, KeyPartSpec& part) const {
    const Section fields(rule_.reading(), path, entry, "rules[].key[]");
    if (entry.count() != 1) {
      rule_.fault(path, entry, "one field: client_ip, header or cookie");
      return false;
    }
    if (fields.names("client_ip")) return read_prefixes(fields, part);
    if (fields.names("header")) return read_name(fields, "header", KeyPart::kHeader, part);
    if (fields.names("cookie")) return read_name(fields, "cookie", KeyPart::kCookie, part);
    return false;  // an unknown field, which is a fault already
  }

  bool read_prefixes(const Section& fields, KeyPartSpec& part) const {
    if (!fields.has("client_ip")) return true;  // `- client_ip:` is client_ip
    const FieldPath path = fields.path("client_ip");
    const Section prefixes(rule_.reading(), path, fields.value("client_ip"), "rules[].key[].client_ip");
    std::uint32_t v4 = part.v4_prefix;
    std::uint32_t v6 = part.v6_prefix;
    const bool v4_right = prefixes.read("v4_prefix", v4) || !prefixes.has("v4_prefix");
    const bool v6_right = prefixes.read("v6_prefix", v6) || !prefixes.has("v6_prefix");
    part.v4_prefix = static_cast<std::uint8_t>(v4);
    part.v6_prefix = static_cast<std::uint8_t>(v6);
    return v4_right && v6_right;
  }

  static bool read_name(const Section& fields, std::string_view leaf, KeyPart type, KeyPartSpec& part) {
    const YamlValue value = fields.value(leaf);
    const std::string_view text = value.exists() ? value.text() : std::string_view();
    if (!is_token(text, kHeaderNameBytesMax)) {
      fields.fault(leaf, std::string(fields.option(leaf).range));
      return false;
    }
    part.type = type;
    part.name = type == KeyPart::kHeader ? lower(text) : std::string(text);  // cookies' names keep their case
    return true;
  }

  const Section& rule_;
  std::vector<KeyPartSpec>& key_;
};

}  // namespace

void read_match(const Section& rule, MatchSpec& match) {
  if (!rule.has("match")) return;
  const FieldPath path = rule.path("match");
  const Section section(rule.reading(), path, rule.value("match"), "rules[].match");
  read_host(section, match);
  read_path(section, match);
  read_methods(section, match);
}

void read_key(const Section& rule, std::vector<KeyPartSpec>& key) {
  std::vector<YamlValue> entries;
  if (!rule.read_list("key", entries)) return;
  KeyReader reader(rule, key);
  for (std::size_t i = 0; i < entries.size(); ++i) reader.read(entries[i], i);
}

}  // namespace popgate
