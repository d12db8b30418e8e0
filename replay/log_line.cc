// SPDX-License-Identifier: Apache-2.0
#include "replay/log_line.h"

#include <array>
#include <cctype>

#include "libclient/hex.h"
#include "replay/log_client.h"
#include "replay/log_time.h"

namespace popgate {
namespace {

constexpr const char* kNoTime = "no time between brackets, as in [10/Oct/2000:13:55:36 -0700]";
constexpr std::string_view kSpace = " \t\r\n\v\f";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// The line cut at the brackets of its time.
struct Cut {
  std::string_view head;  // client, ident, user, perhaps a virtual host
  std::string_view time;
  std::string_view tail;  // from behind the closing bracket
};

bool cut_at_time(std::string_view line, Cut& out) {
  for (std::size_t open = line.find('['); open < kHeadBytesMax; open = line.find('[', open + 1)) {
    if (!begins_like_log_time(line.substr(open + 1))) continue;
    const std::size_t close = line.find(']', open);
    if (close == std::string_view::npos) return false;
    out = {line.substr(0, open), line.substr(open + 1, close - open - 1), line.substr(close + 1)};
    return true;
  }
  return false;
}

struct Words {
  std::array<std::string_view, kHeadWordsMax> items;
  std::size_t count = 0;
  bool too_many = false;
};

Words split(std::string_view text) {
  Words words;
  for (std::size_t at = text.find_first_not_of(" \t"); at != std::string_view::npos;
       at = text.find_first_not_of(" \t", at)) {
    if (words.count == kHeadWordsMax) {
      words.too_many = true;
      break;
    }
    const std::size_t end = std::min(text.find_first_of(" \t", at), text.size());
    words.items[words.count++] = text.substr(at, end - at);
    at = end;
  }
  return words;
}

bool is_address_word(std::string_view word) { return is_address(bare_client(word)); }

// A virtual host stands in front when the second word is an address, or when there is a word too many, the first is no
// address and the second could be a host name. (`192.0.2.1 - John Smith` has words too many and is no such line.)
bool has_virtual_host(const Words& words) {
  if (words.count < 2) return false;
  if (is_address_word(words.items[1])) return true;
  return words.count == 4 && words.items[1] != "-" && is_client_text(words.items[1]) &&
         !is_address_word(words.items[0]);
}

// Null, or why no client can be read.
const char* read_head(const Cut& cut, LogFormat format, AccessRecord& out) {
  const Words words = split(cut.head);
  if (words.count == 0) return "no client before the time";
  const bool vhost = has_virtual_host(words);
  const std::size_t first = vhost ? 1 : 0;
  const std::string_view client = words.items[first];
  const std::size_t words_of_client = words.count - first;
  const bool address = is_address_word(client);
  if (client == "-" || !is_client_text(client)) return "the client is neither an address nor a host name";
  // Without an address to hold on to, a line of words is only taken for a record when it has the right number of them.
  if (!address && (words.too_many || words_of_client != 3)) return "no client address before the time";
  if (vhost) out.host = words.items[0];
  out.client = bare_client(client);
  if (words_of_client != 3) {
    out.lenient_why = words_of_client < 3 ? "fewer words before the time than client, ident and user"
                                          : "more words before the time than client, ident and user";
  } else if (vhost && format == LogFormat::kCombined) {
    out.lenient_why = "virtual host before the client";
  } else if (!vhost && format == LogFormat::kVhost) {
    out.lenient_why = "no virtual host before the client";
  }
  return nullptr;
}

// True when `text` (behind a request's closing quote) begins with a status: three digits, or a dash.
bool begins_with_status(std::string_view text) {
  if (text.size() < 2 || text[0] != ' ') return false;
  const std::size_t digits = text[1] == '-' ? 1 : 3;
  if (text.size() < 1 + digits) return false;
  for (std::size_t i = 1; digits == 3 && i <= 3; ++i) {
    if (!is_digit(text[i])) return false;
  }
  return text.size() == 1 + digits || text[1 + digits] == ' ';
}

// The first quote from `from` on that no backslash escapes.
std::size_t find_quote(std::string_view text, std::size_t from) {
  for (std::size_t i = from; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i;
    }
  }
  return std::string_view::npos;
}

// Where the request ends: at its first unescaped quote when a status follows it, else at the first quote of any kind
// that a status follows (a quote inside was not escaped, or the request ends in a backslash).
std::size_t find_request_end(std::string_view text, std::size_t from, bool& tolerated) {
  const std::size_t usual = find_quote(text, from);
  if (usual != std::string_view::npos && begins_with_status(text.substr(usual + 1))) return usual;
  for (std::size_t at = text.find('"', from); at != std::string_view::npos; at = text.find('"', at + 1)) {
    tolerated = begins_with_status(text.substr(at + 1));
    if (tolerated) return at;
  }
  return usual;
}

bool is_method(std::string_view text) {
  if (text.empty() || text[0] < 'A' || text[0] > 'Z') return false;
  for (const char c : text) {
    if ((c < 'A' || c > 'Z') && c != '-' && c != '_') return false;
  }
  return true;
}

// "HTTP/1.1", "HTTP/2"
bool is_protocol(std::string_view text) {
  if (!text.starts_with("HTTP/")) return false;
  text.remove_prefix(5);
  const std::size_t dot = std::min(text.find('.'), text.size());
  const auto digits = [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return digits(text.substr(0, dot)) && (dot == text.size() || digits(text.substr(dot + 1)));
}

// A target may hold spaces that the client did not escape, as long as a protocol ends the request.
void split_request(AccessRecord& out) {
  out.request_bad = true;
  const std::size_t first = out.request.find(' ');
  if (first == std::string_view::npos || !is_method(out.request.substr(0, first))) return;
  std::string_view target = out.request.substr(first + 1);
  const std::size_t last = target.rfind(' ');
  if (last != std::string_view::npos) {
    if (!is_protocol(target.substr(last + 1))) return;
    target = target.substr(0, last);
  }
  if (target.empty()) return;
  out.method = out.request.substr(0, first);
  out.target = target;
  out.request_bad = false;
}

// The next quoted field of `text`, which is moved behind it; empty when there is none or it is `-`.
std::string_view take_quoted(std::string_view& text) {
  const std::size_t open = find_quote(text, 0);
  if (open == std::string_view::npos) return {};
  const std::size_t close = std::min(find_quote(text, open + 1), text.size());
  const std::string_view field = text.substr(open + 1, close - open - 1);
  text.remove_prefix(std::min(close + 1, text.size()));
  return field == "-" ? std::string_view{} : field;
}

bool quotes_balance(std::string_view text) {
  bool even = true;
  for (std::size_t at = find_quote(text, 0); at != std::string_view::npos; at = find_quote(text, at + 1)) even = !even;
  return even;
}

void read_after_request(std::string_view text, AccessRecord& out) {
  if (!begins_with_status(text)) {
    out.lenient_why = "no status after the request";
    return;
  }
  text.remove_prefix(1);
  out.status = text.substr(0, text.find(' '));
  if (!quotes_balance(text)) out.lenient_why = "unbalanced quotes after the status";
  out.referer = take_quoted(text);
  out.user_agent = take_quoted(text);
}

void read_tail(std::string_view tail, AccessRecord& out) {
  const std::size_t open = tail.find('"');
  if (open == std::string_view::npos) {
    out.request_bad = true;
    out.lenient_why = "no request after the time";
    return;
  }
  if (open != 1 || tail[0] != ' ') out.lenient_why = "something between the time and the request";
  bool tolerated = false;
  const std::size_t close = find_request_end(tail, open + 1, tolerated);
  out.request = tail.substr(open + 1, close == std::string_view::npos ? close : close - open - 1);
  split_request(out);
  if (close == std::string_view::npos) {
    out.lenient_why = "the line ends inside the request";
    return;
  }
  read_after_request(tail.substr(close + 1), out);
  if (tolerated && out.lenient_why == nullptr) out.lenient_why = "an unescaped quote inside the request";
}

// Some exporters put every line between quotes and escape or double those inside. Nothing of the grammar begins with a
// quote.
std::string_view without_wrapping(std::string_view line, std::string& scratch) {
  if (line.size() < 2 || (line.front() != '"' && line.front() != '\'')) return line;
  const char quote = line.front();
  line.remove_prefix(1);
  if (line.back() == quote) line.remove_suffix(1);
  const std::size_t inner = line.find('"');
  const bool escaped = inner != std::string_view::npos && inner > 0 && line[inner - 1] == '\\';
  const bool doubled = inner != std::string_view::npos && line.substr(inner, 2) == "\"\"";
  if (quote != '"' || (!escaped && !doubled)) return line;
  scratch.clear();
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == (escaped ? '\\' : '"') && i + 1 < line.size() && (line[i + 1] == '"' || line[i + 1] == '\\')) ++i;
    scratch += line[i];
  }
  return scratch;
}

// The character that stands behind a backslash, or itself.
char escaped_char(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'v':
      return '\v';
    case 'f':
      return '\f';
    case 'b':
      return '\b';
    default:
      return c;
  }
}

}  // namespace

ParsedLine parse_log_line(std::string_view line, LogFormat format, std::string& scratch, AccessRecord& out) {
  out = {};
  line = trim(line);
  if (line.empty()) return {LineKind::kBlank, nullptr};
  if (line.front() == '#') return {LineKind::kComment, nullptr};
  const std::string_view bare = without_wrapping(line, scratch);
  const bool wrapped = bare.data() != line.data();
  line = bare;
  Cut cut;
  if (!cut_at_time(line, cut)) return {LineKind::kUnparsable, kNoTime};
  if (const char* reason = read_head(cut, format, out)) return {LineKind::kUnparsable, reason};
  LogTime time;
  if (const char* reason = parse_log_time(cut.time, time)) return {LineKind::kUnparsable, reason};
  out.time = time.time;
  read_tail(cut.tail, out);
  if (time.odd && out.lenient_why == nullptr) out.lenient_why = "a time that is not written the usual way";
  if (wrapped) out.lenient_why = "quotes around the line";
  return {LineKind::kRecord, nullptr};
}

int format_vote(std::string_view line) {
  std::string scratch;
  Cut cut;
  if (!cut_at_time(without_wrapping(trim(line), scratch), cut)) return 0;
  const Words words = split(cut.head);
  if (words.count == 0) return 0;
  return has_virtual_host(words) ? 1 : -1;
}

std::string unescape_log_text(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      plain += text[i];
      continue;
    }
    const char next = text[++i];
    if (next == 'x' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 && hex_value(text[i + 2]) >= 0) {
      plain += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      i += 2;
    } else {
      plain += escaped_char(next);
    }
  }
  return plain;
}

}  // namespace popgate
