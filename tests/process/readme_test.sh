#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What README.md shows works as it stands: the C program compiles, links, runs without a daemon and passes the request;
# the daemon's configurations have no fault.
# Usage: readme_test.sh SOURCE_FOLDER BUILD_FOLDER CC FLAGS
set -euo pipefail
source=$1 build=$2 cc=$3 flags=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The N-th block of a language.
block() { awk -v language="$1" -v wanted="$2" '
  $0 == "```" language { found++; inside = (found == wanted); next }
  /^```/ { inside = 0 }
  inside' "$source/README.md"; }

block c 1 > "$work/worker.c"
[ "$(wc -l < "$work/worker.c")" -ge 20 ] || { echo "README.md has no C program"; exit 1; }
# shellcheck disable=SC2086  # flags are words
"$cc" -std=c11 -Wall -Wextra -Werror $flags -I"$source/libclient/include" "$work/worker.c" -o "$work/worker" \
  -L"$build" -lpopgate -Wl,-rpath,"$build"
answer=$("$work/worker")
[ "$answer" = $'200 OK\r' ] || { echo "the README's worker said: $answer"; exit 1; }

block yaml 1 > "$work/one.yml"
"$build/popgated" --check-config "$work/one.yml"

echo 000102030405060708090a0b0c0d0e0f > "$work/secret"
chmod 600 "$work/secret"
"$source/scripts/make-certs" "$work" fra edge-1 > "$work/make-certs.log"
{ block yaml 1; block yaml 2 | sed "s|/etc/popgate/secret|$work/secret|"; } > "$work/more.yml"
"$build/popgated" --check-config "$work/more.yml"
"$build/popgated" --print-nutcracker "$work/more.yml" | grep -q 'hash: md5'
