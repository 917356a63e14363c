#!/usr/bin/env bash
# Tables 4.2 and 4.3 of Wood's dissertation over the programs of examples/lardvm, as Markdown: bench/lard.sh > table.md
# REDFLAG is the command, HEAP the bytes of a heap. Each number of a pair is accesses/places.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
redflag=${REDFLAG:-$root/build/redflag}
heap=${HEAP:-8192}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset REDFLAG_OPTIONS TSAN_OPTIONS

"$redflag" cc -O1 -g "$root"/examples/lardvm/*.c -o "$dir/lardvm"
echo "| Program | Collector | LARD | AllMem, false | AllSync, missed | NoClear, false | NoCopy, missed | NoIdentity, false | missed | Naive, false | missed |"
echo "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
for path in "$root"/examples/lardvm/programs/*.lard; do
    read -r _ _ _ _ _ more < <(sed -n 1p "$path" | tr -d ,)
    for gc in ms ss; do
        # shellcheck disable=SC2086
        "$redflag" record -q -o "$dir/run.rft" "$dir/lardvm" --gc "$gc" --heap "$heap" ${more#with} "$path" >"$dir/out" 2>&1
        "$redflag" compare --lard "$dir/run.rft" >"$dir/table" || [ $? -eq 66 ]
        awk -v name="$(basename "$path" .lard)" -v gc="${gc^^}" '
            $1 == "view" { there = 1; next }
            there { all[$1] = $2 "/" $3; f[$1] = $4 "/" $5; m[$1] = $6 "/" $7 }
            END { print "| " name " | " gc " | " all["LARD"] " | " f["AllMem"] " | " m["AllSync"] " | " f["NoClear"] " | " m["NoCopy"] \
                        " | " f["NoIdentity"] " | " m["NoIdentity"] " | " f["Naive"] " | " m["Naive"] " |" }' "$dir/table"
    done
done
