#!/bin/sh
# The runtime beside gcc's and clang's ThreadSanitizer, on real programs and small kernels, as Markdown tables on standard output.
#
#   PROGRAMS  which ones (default: all; "kernels" stands for the small ones)
#   VARIANTS  which ones (default: native gcc-redflag gcc-unchanged gcc-tsan clang-tsan; native always runs; gcc-redflag is built by
#             `redflag cc`, gcc-unchanged is the binary of gcc-tsan on our runtime; there are clang-redflag and clang-inline, too, and
#             gcc+detector=pacer,rate=0.01: the binary of gcc-unchanged with these options)
#   ROUNDS    how often each is run; the least processor time and the largest resident set count (default 3)
#   SCALE     amount of work, in percent (default 100)
#   PERCENT   of the small kernels' work (default 100)
#   BUILD_ONLY=1   fetch and build, and stop
#   FIGURES=no     without the table of single figures
#   LIMIT          seconds for a run; what takes longer is left out (default 300)
#
# 1. Sources are Debian's (bench/runtime/fetch.sh); all is built under $B/bench (bench/runtime/build.sh) and kept for the next time.
# 2. Everything takes turns, program by program and variant by variant, so that a busy machine disturbs all alike. Processor time of
#    user and system together is compared, not wall time.
# 3. gcc-tsan and gcc-unchanged are the same binary; the loader's path decides which runtime it gets. No variant prints reports: it is the
#    cost of looking that is compared, not that of symbols.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
B=${B:-build}
mkdir -p "$B/bench"
B=$(cd "$B" && pwd)
work=$B/bench
rounds=${ROUNDS:-3}
scale=${SCALE:-100}
kernels="kernel-matmul kernel-sort kernel-hash kernel-atomics kernel-queue kernel-tree kernel-copy kernel-bytes"
[ -z "${PERCENT:-}" ] || kernels=$(echo "$kernels" | sed "s/ \|\$/@$PERCENT /g")
programs=$(echo "${PROGRAMS:-pigz pbzip2 zstd xz x264 memcached redis kernels}" | sed "s/kernels/$kernels/")
variants=$(echo "native ${VARIANTS:-gcc-redflag gcc-unchanged gcc-tsan clang-tsan}" | sed 's/native \(.*\)native/native \1/')

say() {
    echo "bench: $*" >&2
}

# -- sources and builds -------------------------------------------------------------------------------------------------------------

packages=
for program in $programs; do
    case $program in
    pigz) packages="$packages pigz zlib" ;;
    pbzip2) packages="$packages pbzip2 bzip2" ;;
    xz) packages="$packages xz-utils" ;;
    memcached) packages="$packages memcached libevent" ;;
    kernel-*) ;;
    *) packages="$packages $program" ;;
    esac
done
# shellcheck disable=SC2086 # words
"$here/runtime/fetch.sh" "$work/src" $packages

build() {
    # shellcheck disable=SC2086
    "$here/runtime/build.sh" "$work/src" "$work/$1" "$2" "$3" $programs kernel-nothing kernel-lockpair kernel-threads
}

# All at once: half of building is waiting for configure scripts.
redflag=$B/redflag
builds=
for variant in $variants; do
    case $variant in
    native) build native gcc g++ & ;;
    gcc-redflag) build gcc-redflag "$redflag cc" "$redflag c++" & ;;
    gcc-* | gcc+*)
        case $builds in *gcc*) continue ;; esac
        builds="$builds gcc"
        build gcc "gcc -fsanitize=thread" "g++ -fsanitize=thread" &
        ;;
    clang-tsan) build clang "clang -fsanitize=thread" "clang++ -fsanitize=thread" & ;;
    clang-redflag) REDFLAG_CC=clang REDFLAG_CXX=clang++ build clang-redflag "$redflag cc" "$redflag c++" & ;;
    clang-inline) REDFLAG_CC=clang REDFLAG_CXX=clang++ build clang-inline "$redflag cc --inline" "$redflag c++ --inline" & ;;
    *) say "$variant: no such variant" && exit 2 ;;
    esac
done
wait
for tool in measure runtime/load runtime/input; do
    gcc -O2 -D_GNU_SOURCE -o "$work/${tool##*/}" "$here/$tool.c" -lm
done
[ -z "${BUILD_ONLY:-}" ] || exit 0

# -- work ---------------------------------------------------------------------------------------------------------------------------

amount() {
    echo $(($1 * scale / 100))
}

# input NAME KIND AMOUNT
input() {
    [ -s "$work/$1-$3" ] || { "$work/input" "$2" "$3" >"$work/new" && mv "$work/new" "$work/$1-$3"; }
    echo "$work/$1-$3"
}

text=$(input text text "$(amount 4000000)")
long=$(input text text "$(amount 16000000)")
video=$(input video video "$(amount 60)")
requests=$(amount 200000)
socket=$work/socket

# command PROGRAM FILE: what is run, in the words of bench/measure.c or bench/runtime/load.c
command_of() {
    case $1 in
    pigz) echo "$work/measure 1 $2 -p 2 -c -k $text" ;;
    pbzip2) echo "$work/measure 1 $2 -p2 -q -c -k $text" ;;
    zstd) echo "$work/measure 1 $2 -q -T2 -6 -c $long" ;;
    xz) echo "$work/measure 1 $2 -q -T2 -2 --block-size=1MiB -c -k $text" ;;
    x264) echo "$work/measure 1 $2 --quiet --no-progress --threads 2 --preset fast --demuxer y4m -o /dev/null $video" ;;
    memcached) echo "$work/load memcached $requests $socket $2 -u root -t 2 -U 0 -s $socket -m 64" ;;
    redis) echo "$work/load redis $requests $socket $2 --port 0 --unixsocket $socket --save --loglevel warning" ;;
    *) echo "$work/measure 1 $2" ;;
    esac
}

# Where the address space is random by many bits, the stock runtimes refuse to start.
fixed=
if setarch -R true 2>/dev/null; then
    fixed="setarch -R"
fi
limit=${LIMIT:-300} # seconds: what takes longer is left out
quiet="report_bugs=0:exitcode=0:report_thread_leaks=0:atexit_sleep_ms=0"

# run VARIANT COMMAND...: with the environment of the variant
run() {
    variant=$1
    shift
    # shellcheck disable=SC2086
    case $variant in
    native) timeout "$limit" "$@" ;;
    *-redflag | gcc-unchanged | clang-inline) env LD_LIBRARY_PATH="$B/lib/tsan" REDFLAG_OPTIONS="$quiet" timeout "$limit" "$@" ;;
    gcc+*)
        options=$(echo "${variant#gcc+}" | tr , :)
        env LD_LIBRARY_PATH="$B/lib/tsan" REDFLAG_OPTIONS="$quiet:$options" timeout "$limit" "$@"
        ;;
    *) env TSAN_OPTIONS="$quiet" timeout "$limit" $fixed "$@" ;;
    esac
}

binary() {
    case $1 in
    gcc-tsan | gcc-unchanged | gcc+*) echo "$work/gcc/$2" ;;
    clang-tsan) echo "$work/clang/$2" ;;
    *) echo "$work/$1/$2" ;;
    esac
}

results=$work/results
: >"$results"
round=1
while [ "$round" -le "$rounds" ]; do
    for program in $programs; do
        for variant in $variants; do
            file=$(binary "$variant" "$program")
            [ -x "$file" ] || continue
            say "round $round of $rounds: $program, $variant"
            # shellcheck disable=SC2046
            if figures=$(run "$variant" $(command_of "$program" "$file") 2>"$work/error"); then
                echo "$program $variant $figures" >>"$results"
            else
                say "$program, $variant failed: $(tail -n 1 "$work/error")"
            fi
        done
    done
    round=$((round + 1))
done

# -- tables -------------------------------------------------------------------------------------------------------------------------

# least PROGRAM VARIANT REPEAT COLUMN: of bench/measure.c
least() {
    # shellcheck disable=SC2046
    run "$2" "$work/measure" "$3" "$(binary "$2" "$1")" 2>/dev/null | cut -d ' ' -f "$4"
}

awk -v variants="$variants" -v programs="$programs" '
    {
        key = $1 SUBSEP $2
        if (!(key in cpu) || $4 < cpu[key]) cpu[key] = $4
        if ($5 > rss[key]) rss[key] = $5
    }
    function ratio(value, base) { return value == "" || base == "" || base <= 0 ? "-" : sprintf("%.2fx", value / base) }
    END {
        count = split(variants, variant, " ")
        total = split(programs, program, " ")
        for (table = 0; table < 2; table++) {
            printf table ? "\n| Peak memory | native, MB |" : "| Processor time | native, s |"
            for (v = 2; v <= count; v++) printf " %s |", variant[v]
            printf "\n|---|---:|"
            for (v = 2; v <= count; v++) printf "---:|"
            print ""
            for (p = 1; p <= total; p++) {
                native = program[p] SUBSEP "native"
                if (!(native in cpu)) continue
                printf table ? "| %s | %.0f |" : "| %s | %.2f |", program[p], table ? rss[native] / 1024 : cpu[native]
                for (v = 2; v <= count; v++) {
                    key = program[p] SUBSEP variant[v]
                    value = table ? rss[key] : cpu[key]
                    base = table ? rss[native] : cpu[native]
                    printf " %s |", ratio(value, base)
                    if (value != "" && base > 0 && (!table || base >= 51200)) { sum[table, v] += log(value / base); n[table, v]++ }
                }
                print ""
            }
            printf table ? "| geometric mean, of those with 50 MB and more | |" : "| geometric mean | |"
            for (v = 2; v <= count; v++) printf " %s |", n[table, v] ? sprintf("%.2fx", exp(sum[table, v] / n[table, v])) : "-"
            print ""
        }
    }' "$results"

[ "${FIGURES:-}" != no ] || exit 0
printf '\n| Single figures | %s |\n|---|' "$(echo "$variants" | sed 's/ / | /g')"
for variant in $variants; do printf -- '---:|'; done
printf '\n| lock and unlock of a free mutex, ns |'
for variant in $variants; do
    printf ' %s |' "$(run "$variant" "$(binary "$variant" kernel-lockpair)" 2>/dev/null)"
done
printf '\n| start and end of an empty program, ms of processor time |'
for variant in $variants; do
    printf ' %s |' "$(least kernel-nothing "$variant" 40 2 | awk '{ print $1 * 1000 }')"
done
printf '\n| a thread that waits, bytes of resident memory |'
for variant in $variants; do
    printf ' %s |' "$(run "$variant" "$(binary "$variant" kernel-threads)" 2>/dev/null)"
done
echo
