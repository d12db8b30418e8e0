#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# libpopgate.so offers exactly the functions of popgate.h and nothing else, and needs no library beyond libsodium, the C++
# run-time and the C library.
# Usage: exports_test.sh LIBRARY HEADER [sanitized]
set -euo pipefail
library=$1 header=$2 sanitized=${3:-}
expected=$(grep -oE '\bpopgate_[a-z_]+\(' <(sed -n '/^POPGATE_API/,/;/p' "$header") | tr -d '(' | sort -u)
found=$(nm -D --defined-only "$library" | awk '{print $3}' | sort -u)
diff <(echo "$expected") <(echo "$found") || { echo "exported (>) differs from popgate.h (<)"; exit 1; }
readelf -d "$library" | grep -q 'SONAME.*\[libpopgate.so.0\]' || { echo "wrong SONAME"; exit 1; }
[ -n "$sanitized" ] && exit 0
others=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
  grep -vE '^(libsodium|libstdc\+\+|libgcc_s|libm|libc|libpthread|ld-linux.*)\.so' || true)
[ -z "$others" ] || { echo "needs $others"; exit 1; }
