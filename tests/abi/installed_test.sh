#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the library into a directory of its own, builds a consumer against it as users would (pkg-config and the CMake
# package, C11, C++17 and C++20, shared and static), and runs it.
# Usage: installed_test.sh BUILD_FOLDER SOURCE_FOLDER CC CXX FLAGS
set -euo pipefail
build=$1 source=$2 cc=$3 cxx=$4 flags=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

cmake --install "$build" --component library --prefix "$prefix" >/dev/null
pc=$(find "$prefix" -name libpopgate.pc)
libdir=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=$libdir/pkgconfig
for file in "$prefix/include/popgate/popgate.h" "$prefix/include/popgate/popgate.hpp" "$libdir/libpopgate.so" \
  "$libdir/libpopgate.so.0" "$libdir/libpopgate.a" "$libdir/cmake/popgate/popgateConfig.cmake"; do
  [ -e "$file" ] || { echo "not installed: $file"; exit 1; }
done
[ "$(pkg-config --modversion libpopgate)" = "$(sed -n 's/^.*VERSION \([0-9.]*\) LANGUAGES.*/\1/p' "$source/CMakeLists.txt")" ]

run() {
  LD_LIBRARY_PATH=$libdir "$1" || { echo "$1 failed at its line $?"; exit 1; }
}

consumer=$source/tests/abi/consumer
# shellcheck disable=SC2046,SC2086
{
  strict="-Wall -Wextra -Wpedantic -Werror -I$source/tests/abi $flags"
  $cc -std=c11 $strict "$consumer/consumer.c" -o "$work/c11" $(pkg-config --cflags --libs libpopgate)
  $cxx -std=c++17 $strict "$consumer/consumer.cc" -o "$work/cc17" $(pkg-config --cflags --libs libpopgate)
  $cxx -std=c++20 $strict "$consumer/consumer.cc" -o "$work/cc20" $(pkg-config --cflags --libs libpopgate)
  $cc -std=c11 $strict "$consumer/consumer.c" -o "$work/c11_static" $(pkg-config --cflags libpopgate) \
    "$libdir/libpopgate.a" $(pkg-config --static --libs-only-l libpopgate | sed 's/-lpopgate//')
}
for program in c11 cc17 cc20 c11_static; do run "$work/$program"; done
if readelf -d "$work/c11_static" | grep -q libpopgate; then echo "the static program needs libpopgate.so"; exit 1; fi

CC=$cc CXX=$cxx CFLAGS=$flags CXXFLAGS=$flags cmake -S "$consumer" -B "$work/by-package" \
  -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$work/by-package" >/dev/null
for program in c_popgate cc_popgate c_static cc_static; do run "$work/by-package/$program"; done
