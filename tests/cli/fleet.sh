#!/bin/bash
# The store under attack: fifty processes lease at once from PostgreSQL, whose server is killed and started again in the middle; the same
# from a file; killed processes, a full disk, a store that is out of reach. Nothing that was acknowledged is lost, nothing is leased twice.
set -eu
redflag=${REDFLAG:?}
dir=$(mktemp -d /tmp/redflag-fleet.XXXXXX) # which the server may enter, too, and short enough for the name of a socket
server=
stop() { [ -z "$server" ] || as_server "$bin/pg_ctl" -D "$dir/data" -t 600 -m immediate stop >/dev/null 2>&1 || true; }
trap 'stop; rm -rf "$dir"' EXIT
cd "$dir"
fail() {
    echo "fleet.sh: $*" >&2
    exit 1
}
unset REDFLAG_STORE
export REDFLAG_SPOOL=$dir/spool.jsonl

# -- a server on a local socket; it refuses to run as root ------------------------------------------------------------------------------
bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin | sort -V | tail -n 1)
[ -x "$bin/initdb" ] || fail "no PostgreSQL server is installed (Debian: postgresql)"
chmod 755 "$dir"
mkdir data socket
as_server() { "$@"; }
if [ "$(id -u)" -eq 0 ]; then
    chown postgres data socket
    as_server() { runuser -u postgres -- "$@"; }
fi
as_server "$bin/initdb" -D "$dir/data" -U fleet -A trust >initdb.log 2>&1 || fail "$(tail -n 3 initdb.log)"
start() {
    as_server "$bin/pg_ctl" -D "$dir/data" -w -t 600 -o "-k $dir/socket -c listen_addresses= -c max_connections=200" -l "$dir/data/log" \
        start >/dev/null || fail "$(tail -n 3 data/log)"
    server=yes
}
start
postgres="postgresql:///postgres?host=$dir/socket&user=fleet"

# -- one text, both databases -----------------------------------------------------------------------------------------------------------
unit=$(dirname "$redflag")/tests/test_fleet
[ ! -x "$unit" ] || FLEET_STORE=$postgres "$unit" >unit.log 2>&1 || fail "$(grep -v OK unit.log)"

pairs=200
workers=50
# worker STORE NUMBER: leases four pairs, then says of each that it was looked at, and that the first one of all races.
worker() {
    local round run pair
    for round in 1 2 3 4; do
        run=w$2-$round
        pair=$("$redflag" store -s "$1" --patience 600 lease "$run" 10000) || return 1
        [ -n "$pair" ] || { echo "worker $2: nothing to lease" >&2 && return 1; }
        echo "$pair" >>"leased.$2"
        printf '{"redflag":"run","id":"%s","mode":"chase","pair":["%s","%s"],"host":"h%d"}\n' "$run" "${pair% *}" "${pair#* }" "$2" \
            >"result.$2.$round"
    done
    : >"leased-all.$2"
    while [ ! -e finish ]; do sleep 0.1; done
    for round in 1 2 3 4; do
        # Twice: an acknowledgement that got lost makes a client say it again.
        "$redflag" store -s "$1" --patience 600 import "result.$2.$round" "result.$2.$round" || return 1
    done
}

attack() { # STORE [kill]
    rm -f leased* result* finish
    seq "$pairs" | sed 's/.*/b+0x& b+0x1&/' >pairs.txt
    "$redflag" store -s "$1" import pairs.txt
    local number jobs=()
    for number in $(seq "$workers"); do
        worker "$1" "$number" 2>>errors.log &
        jobs+=($!)
    done
    if [ -n "${2:-}" ]; then
        as_server "$bin/pg_ctl" -D "$dir/data" -t 600 -m immediate stop >/dev/null
        start
    fi
    while [ "$(find . -name 'leased-all.*' | wc -l)" -lt "$workers" ]; do
        sleep 0.1
        [ "$(jobs -r | wc -l)" -ge "$workers" ] || fail "a worker failed: $(tail -n 3 errors.log)"
    done
    [ "$(cat leased.* | wc -l)" -eq "$pairs" ] || fail "$(cat leased.* | wc -l) leases"
    [ "$(cat leased.* | sort -u | wc -l)" -eq "$pairs" ] || fail "leased twice: $(cat leased.* | sort | uniq -d)"
    "$redflag" store -s "$1" -f json status | grep -q "\"pairs_leased\": $pairs" || fail "leases"
    : >finish
    if [ -n "${2:-}" ]; then
        as_server "$bin/pg_ctl" -D "$dir/data" -t 600 -m immediate stop >/dev/null
        start
    fi
    for number in "${jobs[@]}"; do
        wait "$number" || fail "a worker failed: $(tail -n 3 errors.log)"
    done
    "$redflag" store -s "$1" -f json status >status.json
    grep -q "\"runs\": $pairs" status.json || fail "runs: $(cat status.json)"
    grep -q '"pairs_leased": 0' status.json || fail "leases stayed: $(cat status.json)"
    [ "$("$redflag" store -s "$1" pairs | grep -c ', 1 runs, nothing seen: below 95% a run$')" -eq "$pairs" ] || fail "pairs"
}

as_server "$bin/psql" -q -h "$dir/socket" -U fleet postgres -c 'SET client_min_messages = warning; DROP SCHEMA public CASCADE; CREATE SCHEMA public'
attack "$postgres" kill
attack "$dir/store.db"

# -- from one store to another ----------------------------------------------------------------------------------------------------------
"$redflag" store -s "$postgres" -o all.jsonl export
"$redflag" store -s copy.db merge all.jsonl store.db
"$redflag" store -s copy.db -f json status | grep -q "\"runs\": $pairs" || fail "merge"

# -- a process that is killed while it writes leaves the store whole ----------------------------------------------------------------------
for number in 1 2 3 4 5 6; do
    seq 2000 | sed "s/.*/k$number+0x& k$number+0x1&/" >many.txt
    "$redflag" store -s killed.db import many.txt &
    victim=$!
    sleep "0.0$number"
    kill -9 "$victim" 2>/dev/null || true
    wait "$victim" 2>/dev/null || true
    count=$("$redflag" store -s killed.db pairs | wc -l)
    [ $((count % 2000)) -eq 0 ] || fail "a part of a transaction: $count pairs"
done

# -- out of reach: one line, and what is spooled arrives later ----------------------------------------------------------------------------
printf '{"redflag":"pair","first":"late","second":"comer"}\n' >"$REDFLAG_SPOOL"
stop
for where in "$postgres" "postgresql://nobody@/x?host=$dir/none" "$dir" /proc/none.db; do
    status=0
    "$redflag" store -s "$where" --patience 0 merge 2>err || status=$?
    [ "$status" -eq 2 ] || fail "$where: exit $status"
    [ "$(wc -l <err)" -eq 1 ] || fail "$where: $(cat err)"
done
[ -s "$REDFLAG_SPOOL" ] || fail "the spool is gone"
start
"$redflag" store -s "$postgres" merge
[ -s "$REDFLAG_SPOOL" ] && fail "the spool is still full"
"$redflag" store -s "$postgres" pairs | grep -q '^late  comer' || fail "the spool did not arrive"

# -- redflag watch asks this store, too: what earlier runs took decides whether there is another one that samples -------------------------
echo 'int main(void) { return 7; }' >app.c
"$redflag" cc -O1 app.c -o app
for try in first again; do
    status=0
    "$redflag" watch -s "$postgres" --modes pacer,none --rate 0.01 --max-overhead 0.0001% -- ./app 2>err || status=$?
    [ "$status" -eq 7 ] || fail "watch: exit $status: $(cat err)"
    [ $try = again ] || grep -q 'sampled at 0.01: 0 reports' err || fail "watch: $(cat err)"
done
grep -q 'there was nothing to look for' err || fail "watch, beyond its budget: $(cat err)"

# A run that never came back counts, however often it is told; its end, told by a spool later, is its end.
unfinished() {
    "$redflag" store -s "$postgres" -f json status | grep -q "\"runs_unfinished\": $1" || fail "unfinished: $("$redflag" store -s "$postgres" status)"
}
echo '{"redflag":"run","id":"away","mode":"caper","build":"b","unfinished":true}' >away.jsonl
"$redflag" store -s "$postgres" merge away.jsonl
"$redflag" store -s "$postgres" merge away.jsonl
unfinished 1
for _ in 1 2; do
    echo '{"redflag":"run","id":"away","mode":"caper","build":"b","seconds":2.5,"status":0}' >>away.jsonl
    "$redflag" store -s "$postgres" merge away.jsonl
    unfinished 0
done
[ "$("$redflag" store -s "$postgres" export | grep -c '"id":"away".*"seconds":2.5')" -eq 1 ] || fail "the end of a run was not kept"

# -- a full disk: what was there stays ----------------------------------------------------------------------------------------------------
"$redflag" store -s full.db import pairs.txt
seq 100000 | sed 's/.*/f+0x& f+0x1&/' >many.txt
status=0
(ulimit -f 512 && exec "$redflag" store -s full.db import many.txt) 2>err || status=$?
[ "$status" -eq 2 ] || fail "full disk: exit $status"
[ "$(wc -l <err)" -eq 1 ] || fail "full disk: $(cat err)"
[ "$("$redflag" store -s full.db pairs | wc -l)" -eq "$pairs" ] || fail "after a full disk"

# -- reports of real runs, merged by fingerprint ------------------------------------------------------------------------------------------
cat >report.jsonl <<'REPORT'
{"tool":"redflag","version":1,"kind":"data-race","title":"data race","fingerprint":"00000000000000aa","accesses":[{"op":"read","stack":[{"function":"f","file":"a.c","line":3,"offset":"0x10","module":"/a","build_id":"b1"}]},{"op":"write","stack":[{"function":"g","file":"a.c","line":9,"offset":"0x20","module":"/a","build_id":"b1"}]}]}
REPORT
sed 's/b1/b2/g; s/0x10/0x18/' report.jsonl >other.jsonl
"$redflag" store -s races.db import report.jsonl other.jsonl report.jsonl
"$redflag" store -s races.db races >out
grep -q '^00000000000000aa  data race a.c:3 in f$' out || fail "$(cat out)"
grep -q 'in 2 runs, 2 times' out || fail "$(cat out)"
grep -q 'found by 2 of 2 full runs' out || fail "$(cat out)"
grep -q 'chance that these runs find it: 100.0%' out || fail "$(cat out)"
"$redflag" store -s races.db --occurs 0.5 races | grep -q 'find it: 75.0%' || fail "--occurs"

# -- bad usage ----------------------------------------------------------------------------------------------------------------------------
for bad in "" nothing "status more" "-f xml status" "--occurs 2 races" "import" "import none.txt" "lease" "lease r x"; do
    status=0
    # shellcheck disable=SC2086
    "$redflag" store -s bad.db $bad >out 2>err || status=$?
    [ "$status" -eq 2 ] || fail "'$bad': exit $status"
    [ "$(wc -l <err)" -eq 1 ] || fail "'$bad': $(cat err)"
done
echo 'one' >one.txt
"$redflag" store -s bad.db import one.txt 2>err && fail "half a pair"
grep -qx "redflag store: one.txt: line 1: not 'SITE1 SITE2 \[PRIORITY\]'" err || fail "$(cat err)"
