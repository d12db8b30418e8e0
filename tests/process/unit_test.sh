#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# unit_test.sh SOURCE POPGATED POPGATECTL: the systemd unit is one that systemd accepts, and the daemon works inside what
# it fences: another user without any capability, no new privileges, a system that is read-only but for run and state.
set -euo pipefail
source=$1 popgated=$2 popgatectl=$3
folder=$(mktemp -d /dev/shm/popgate-unit.XXXXXX)
daemon=
finish() {
  [[ -z $daemon ]] || kill -KILL "$daemon" 2> /dev/null || true
  rm -rf "$folder"
}
trap finish EXIT

if command -v systemd-analyze > /dev/null; then
  # Only the paths and names that this host lacks are replaced.
  sed -e 's|/usr/sbin/popgated|/bin/true|' -e 's|^User=.*|User=daemon|' -e 's|^Group=.*|Group=daemon|' \
    "$source/scripts/popgated.service" > "$folder/popgated.service"
  said=$(systemd-analyze verify "$folder/popgated.service" 2>&1 | grep popgated.service || true)
  [[ -z $said ]] || { echo "systemd-analyze verify: $said" >&2; exit 1; }
fi

if [[ $(id -u) -ne 0 ]] || ! unshare --mount true 2> /dev/null; then
  echo "SKIPPED: the fences need root"
  exit 77
fi
mkdir -p "$folder/run" "$folder/state"
cp "$popgated" "$folder/popgated"
cat > "$folder/popgate.yaml" << YAML
run_dir: $folder/run
state_dir: $folder/state
rules: [{name: all, key: [client_ip], limit: 10, window: 1m, mitigate: 1m}]
YAML
chmod 755 "$folder"
chmod 755 "$folder/run" && chmod 700 "$folder/state" && chown nobody:nogroup "$folder/run" "$folder/state"

# ProtectSystem=strict, by hand: everything is remounted read-only, run and state are bound on top.
unshare --mount --propagation private bash -c '
  mount --bind "$1/run" "$1/run" && mount --bind "$1/state" "$1/state"
  mount -o remount,bind,ro / && mount -o remount,bind,ro /dev/shm
  ! touch /popgate-must-not 2> /dev/null || exit 9
  exec setpriv --reuid nobody --regid nogroup --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
    "$1/popgated" --config "$1/popgate.yaml"' bash "$folder" > "$folder/log" 2>&1 &
daemon=$!
"$popgatectl" --socket "$folder/run/admin.sock" ready --wait 20s --quiet || { cat "$folder/log" >&2; exit 1; }
"$popgatectl" --socket "$folder/run/admin.sock" block all 192.0.2.1 --for 1m > /dev/null
kill -HUP "$daemon" # ExecReload
"$popgatectl" --socket "$folder/run/admin.sock" explain all 192.0.2.1 | grep -q '^BLOCKED'
grep -q 'POST /block by uid 0' "$folder/log"
[[ $(grep ^NoNewPrivs /proc/$daemon/status | tr -dc 0-9) = 1 && $(grep ^CapEff /proc/$daemon/status | tr -dc 0-9a-f | tr -d 0) != [1-9] ]]
kill -TERM "$daemon"
wait "$daemon"
daemon=
