#!/usr/bin/env bash
# Recorded runs, analysed afterwards, say what the run itself says: programs of tests/programs, recorded, then `redflag analyze`.
#
# PROGRAMS="mutex-* heap-*" for some of them, ALL=1 for every one that can be compared. Without either, a share that takes little time.
# What must agree is the verdict: a data race, or none. The exceptions are below, each with its reason.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
programs=$top/tests/programs
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset REDFLAG_OPTIONS TSAN_OPTIONS LD_LIBRARY_PATH REDFLAG_CC

# said FILE NAME: the values of `// NAME: value` at the top of the file, one a line
said() {
    sed -n -e '/^\/\//!q' -e "s|^// $2: *||p" "$1"
}

# exception PROGRAM: why it need not agree; nothing if it must
exception() {
    case $1 in
    atomics-plain-read) echo "an atomic write beside a plain read: a trace has no atomic accesses, and as reads they race with writes alone" ;;
    fork-child-races) echo "the child of a fork() is not recorded" ;;
    esac
}

share="threads-* mutex-orders mutex-reused-memory mutex-try-failed rwlock-reader-chain rwlock-two-readers cond-queue cond-before-wait
    barrier-rounds barrier-same-round semaphore-strict semaphore-initial once-* atomics-release-acquire atomics-relaxed-* atomics-fence-*
    atomics-sequence-* atomics-swap-failed-relaxed atomics-refcount heap-reuse heap-race heap-write-free heap-free-write stack-reuse
    fd-pipe fd-two-pipes annotations-happens annotations-benign mapping-again"
[ -n "${ALL:-}" ] && share="*"
cd "$programs"
good=0 bad=0 excepted=0
set -f # patterns stay what they are until compgen takes them
# shellcheck disable=SC2086
files=$(for pattern in ${PROGRAMS:-$share}; do
    compgen -G "$pattern.c" || compgen -G "$pattern.cc" || true
    [ "$pattern" = '*' ] && compgen -G '*.cc'
done | sort -u)
set +f
for file in $files; do
    name=${file%.*} expect=$(said "$file" expect) flags=$(said "$file" flags | tr '\n' ' ') libs=$(said "$file" libs | tr '\n' ' ')
    kind=$(said "$file" kind)
    # Not about data races, or made of several parts.
    [ -z "$(said "$file" part-of)$(said "$file" library)" ] || continue
    case $kind in "" | "data race"*) ;; *) continue ;; esac
    compiler=cc
    case $file in *.cc) compiler=c++ ;; esac
    # shellcheck disable=SC2086
    "$REDFLAG" $compiler -g -O1 -pthread -I "$top" $flags -o "$scratch/$name" "$file" $libs 2>"$scratch/log" || {
        cat "$scratch/log" >&2
        echo "agreement: $file does not build" >&2
        exit 1
    }
    recorded=0 status=0 options=$(said "$file" options)
    mapfile -t environment < <(said "$file" environment)
    (cd "$scratch" && REDFLAG_OPTIONS=$options timeout 100 env ${environment[@]+"${environment[@]}"} \
        "$REDFLAG" record -q -o trace.rft -- "./$name" >log 2>&1 </dev/null) || recorded=$?
    timeout 100 "$REDFLAG" analyze -d fasttrack "$scratch/trace.rft" >"$scratch/verdict" 2>&1 || status=$?
    case $expect in race) wanted=66 ;; *) wanted=0 ;; esac
    if [ "$status" -eq "$wanted" ]; then
        good=$((good + 1))
    elif [ -n "$(exception "$name")" ]; then
        excepted=$((excepted + 1))
    else
        bad=$((bad + 1))
        echo "agreement: $name: $wanted online, $status from the trace (recorded with $recorded)" >&2
        head -n "${LINES_SHOWN:-0}" "$scratch/verdict" "$scratch/log" >&2
    fi
    rm -f "$scratch/$name" "$scratch/trace.rft"
done
echo "agreement: $good programs agree, $excepted are excepted, $bad do not"
[ "$bad" -eq 0 ] && [ "$good" -gt 0 ]
