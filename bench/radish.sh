#!/bin/sh
# What programs cost on hardware with RADISH: the tables of doc/radish.md on standard output, its plots into PLOTS.
#
#   bench/radish.sh [TRACE.rft ...]     recorded executions have a table of their own
#
#   REDFLAG    the command (default build/redflag)
#   B          the build that has libredflag.a (default build)
#   PLOTS      directory for the plots (default doc)
#   WORK       directory for the traces (default a temporary one; about 60 MB, 200 MB more for recordings)
#   PROGRAMS   directory with pigz, pbzip2, zstd, xz, x264, memcached and redis, built with `gcc -fsanitize=thread` (after
#              `make bench`: build/bench/gcc): records them, and the kernels of bench/kernels, each on a small input
#   KERNELS    "yes" records the kernels of bench/kernels without the programs: needs nothing but the build, and two minutes
#   GENERATED  "no" leaves out the tables of the generated traces
set -eu
cd "$(dirname "$0")/.."
B=${B:-build}
redflag=$(realpath "${REDFLAG:-$B/redflag}")
plots=$(realpath "${PLOTS:-doc}")
if [ -n "${WORK:-}" ]; then
    work=$WORK
    mkdir -p "$work"
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi

say() {
    echo "radish: $*" >&2
}

# shellcheck disable=SC2046,SC2086 # flags
"${CC:-cc}" -std=c11 -D_GNU_SOURCE -O2 -I. -o "$work/kernels" bench/radish_kernels.c "$B/libredflag.a" \
    $(pkg-config --libs ${PKGS:-libzstd libxxhash}) -lpthread -lm

"${CC:-cc}" -std=c11 -D_GNU_SOURCE -O2 -o "$work/measure" bench/measure.c

# field NAME FILE: a number of the JSON, the first of that name
field() {
    sed -n "s/^ *\"$1\": \([0-9.]*\),*$/\1/p" "$2" | head -n 1
}

# shares FILE: permission hardware software, of 1; the three are the first of "checks"
shares() {
    awk '/"checks": \{/ && !done { inside = 1 } inside && /"permission"|"hardware"|"software"/ { gsub(/[^0-9]/, ""); v[++n] = $0 }
        inside && n == 3 { inside = 0; done = 1 }
        END { all = v[1] + v[2] + v[3]; if (!all) all = 1; printf "%.5f %.5f %.5f", v[1] / all, v[2] / all, v[3] / all }' "$1"
}

# simulate NAME TRACE OPTIONS...: into $work/NAME.json
simulate() {
    json=$work/$1.json input=$2
    shift 2
    "$redflag" simulate --format json "$@" "$input" >"$json"
}

# sweep NAME TRACE CORES,...: the plot, and its numbers, which are in its marks
sweep() {
    say "sweep of $1"
    # from there, as the plot's title is the trace's name
    (cd "$(dirname "$2")" && "$redflag" simulate --sweep --sweep-cores "$3" --sweep-sizes 256K,512K,1M,4M "$1.rft" -o "$plots/radish-$1.svg")
    echo
    echo "| $1, cores | 256K | 512K | 1M | 4M |"
    echo "|---:|---:|---:|---:|---:|"
    sed -n 's|.*<title>\(.*\)</title></circle>|\1|p' "$plots/radish-$1.svg" | awk -v cores="$3" '{ v[NR] = $1 }
        END { n = split(cores, core, ",")
            for (i = 0; i < n; i++) { printf "| %d", core[i + 1]; for (j = 1; j <= 4; j++) printf " | %.2fx", v[i * 4 + j]; print " |" } }'
}

# Traces of programs that were never run: bench/radish_kernels.c makes them, eight threads each.
generated() {
    kernels=$("$work/kernels" list)
    for name in $kernels; do
        say "trace of $name"
        "$work/kernels" make "$name" "$work/$name.rft"
    done

    echo "### Generated traces: the default machine"
    echo
    echo "| Program | Million events | Slowdown | By permission | By hardware | In software | Metadata lines evicted or cleaned | Bus and memory, with over without |"
    echo "|---|---:|---:|---:|---:|---:|---:|---:|"
    : >"$work/shares"
    for name in $kernels; do
        say "simulate $name"
        simulate base "$work/$name.rft"
        echo "$name $(field slowdown "$json") $(shares "$json")" >>"$work/shares"
        # shellcheck disable=SC2046 # three numbers
        set -- $(shares "$json")
        awk -v name="$name" -v events="$(field events "$json")" -v slowdown="$(field slowdown "$json")" -v p="$1" -v h="$2" -v s="$3" \
            -v evicted="$(sed -n '/"metadata": {/,/}/s/^ *"evictions": \([0-9]*\).*/\1/p' "$json")" -v flushed="$(field flushed "$json")" \
            -v lines="$(sed -n 's/^ *"transactions": \([0-9]*\).*/\1/p' "$json" | tr '\n' ' ')" 'BEGIN {
                split(lines, l, " ")
                printf "| %s | %.1f | %.2fx | %.2f%% | %.2f%% | %.2f%% | %d | %.1fx |\n", name, events / 1e6, slowdown, 100 * p, 100 * h,
                    100 * s, (evicted + 0 > flushed + 0) ? evicted : flushed, l[2] / l[1] }'
    done
    "$work/kernels" plot "Which stage decides a check" <"$work/shares" >"$plots/radish-shares.svg"

    echo
    echo "### What the design choices are worth"
    echo
    echo "| Program | Default | Compact encoding | Handlers on another core | 4 KB L1, 16 KB L2, 256 KB last level |"
    echo "|---|---:|---:|---:|---:|"
    for name in $kernels; do
        say "choices for $name"
        row="| $name"
        for choice in "" "-s encoding=compact" "-s handlers=other" "-s l1_bytes=4K -s l2_bytes=16K -s llc_bytes=256K"; do
            # shellcheck disable=SC2086 # options
            simulate choice "$work/$name.rft" $choice
            row="$row | $(awk -v s="$(field slowdown "$json")" 'BEGIN { printf "%.2fx", s }')"
        done
        echo "$row |"
    done

    echo
    echo "### More threads than cores"
    echo
    echo "| Program, 8 threads | Cores | Context switches | Eager flushing | Lazy flushing |"
    echo "|---|---:|---:|---:|---:|"
    for name in stencil particles; do
        for cores in 2 4; do
            say "switches of $name on $cores cores"
            simulate eager "$work/$name.rft" --cores $cores -s flush=eager
            eager=$(field slowdown "$json")
            simulate lazy "$work/$name.rft" --cores $cores -s flush=lazy
            awk -v name=$name -v cores=$cores -v n="$(field context_switches "$json")" -v e="$eager" -v l="$(field slowdown "$json")" \
                'BEGIN { printf "| %s | %d | %d | %.2fx | %.2fx |\n", name, cores, n, e, l }'
        done
    done

    echo
    echo "### Cache sizes and cores"
    for name in stencil particles; do
        sweep "$name" "$work/$name.rft" 2,4,8
    done
}

# record NAME COMMAND...: into $work/NAME.rft
record() {
    name=$1
    shift
    say "record $name"
    "$redflag" record -q -o "$work/$name.rft" -- "$@" >/dev/null
}

# serve NAME REQUESTS COMMAND...: a server, and what it does for these requests
serve() {
    name=$1 requests=$2
    shift 2
    say "record $name"
    "$work/load" "${name%%-*}" "$requests" "$work/socket" "$redflag" record -q -o "$work/$name.rft" -- "$@" >/dev/null
}

# small NAME KERNEL SED: the kernel of the online benchmarks with numbers that make millions of events instead of billions
small() {
    sed "$3" "bench/kernels/$2.c" >"$work/$1.c"
    "${CC:-cc}" -O2 -g -fsanitize=thread -I. -pthread -o "$work/$1" "$work/$1.c" -lm
    record "$1" "$work/$1"
}

kernels() {
    small kernel-sort sort 's/N = [^,}]*/N = 300000/'
    small kernel-matmul matmul 's/N = .*, ROUNDS = [^,}]*/N = 160, ROUNDS = 1/'
    small kernel-hash hash 's/OPERATIONS = [^,}]*/OPERATIONS = 400000/'
    small kernel-queue queue 's/BLOCKS = [^,}]*/BLOCKS = 10000/'
    small kernel-tree tree 's/NODES = [^,}]*/NODES = 20000/'
    for name in kernel-sort kernel-matmul kernel-hash kernel-queue kernel-tree; do
        recorded="$recorded $work/$name.rft"
    done
}

# The inputs are those of the online benchmarks, only smaller: 5 to 20 million events.
programs() {
    "${CC:-cc}" -O2 -o "$work/input" bench/runtime/input.c -lm
    "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O2 -o "$work/load" bench/runtime/load.c
    for bytes in 150000 300000 600000; do
        "$work/input" text $bytes >"$work/text-$bytes"
    done
    "$work/input" video 3 >"$work/video-3"
    record pigz "$1/pigz" -p2 -c -k "$work/text-300000"
    record pbzip2 "$1/pbzip2" -p2 -q -1 -c -k "$work/text-150000"
    record zstd "$1/zstd" -q -T2 -6 -B512KiB -c "$work/text-600000"
    record xz "$1/xz" -q -T2 -2 --block-size=64KiB -c -k "$work/text-150000"
    record x264 "$1/x264" --quiet --no-progress --threads 2 --preset veryfast --demuxer y4m -o /dev/null "$work/video-3"
    serve memcached 40000 "$1/memcached" -u root -t 2 -U 0 -s "$work/socket" -m 64
    serve redis 20000 "$1/redis" --port 0 --unixsocket "$work/socket" --save --loglevel warning
    for name in pigz pbzip2 zstd xz x264 memcached redis; do
        recorded="$recorded $work/$name.rft"
    done
    kernels
    # for length
    record pigz-150 "$1/pigz" -p2 -c -k "$work/text-150000"
    record pigz-600 "$1/pigz" -p2 -c -k "$work/text-600000"
    small kernel-queue-half queue 's/BLOCKS = [^,}]*/BLOCKS = 5000/'
}

# How the simulator's memory grows with the length of a recording, and with the memory that the program uses.
length() {
    echo
    echo "### Memory and the length of a recording"
    echo
    echo "| Recording | Million events | Thousand variables | Million events a second | Peak memory, MB |"
    echo "|---|---:|---:|---:|---:|"
    for name in pigz-150 pigz-600 kernel-queue-half kernel-queue; do
        say "memory of $name"
        time=$("$work/measure" 1 "$redflag" simulate -f json -o "$work/length.json" "$work/$name.rft")
        variables=$("$redflag" trace info "$work/$name.rft" | awk '$1 == "variables" { print $2 }')
        awk -v name="$name" -v events="$(field events "$work/length.json")" -v variables="$variables" -v time="$time" 'BEGIN {
            split(time, t, " ")
            printf "| %s | %.1f | %.1f | %.1f | %.0f |\n", name, events / 1e6, variables / 1e3, events / 1e6 / t[2], t[3] / 1024 }'
    done
}

# Recorded executions.
recordings() {
    echo
    echo "### Recorded executions"
    echo
    echo "| Program | Threads | Million events | Slowdown | Handlers on another core | Compact encoding | By permission | By hardware | In software | Roll-overs | Simulator, million events a second | Its peak memory, MB |"
    echo "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    : >"$work/shares"
    for trace in $recorded; do
        name=$(basename "$trace" .rft)
        say "simulate $name"
        simulate other "$trace" -s handlers=other
        other=$(field slowdown "$json")
        simulate compact "$trace" -s encoding=compact
        compact=$(field slowdown "$json")
        json=$work/base.json
        time=$("$work/measure" 1 "$redflag" simulate -f json -o "$json" "$trace")
        echo "$name $(field slowdown "$json") $(shares "$json")" >>"$work/shares"
        awk -v name="$name" -v threads="$(field threads "$json")" -v events="$(field events "$json")" -v s="$(field slowdown "$json")" \
            -v other="$other" -v compact="$compact" -v shares="$(shares "$json")" -v rolls="$(field roll_overs "$json")" \
            -v time="$time" 'BEGIN {
                split(shares, share, " ")
                split(time, t, " ")
                printf "| %s | %d | %.1f | %.2fx | %.2fx | %.2fx | %.2f%% | %.2f%% | %.2f%% | %d | %.1f | %.0f |\n", name, threads, events / 1e6,
                    s, other, compact, 100 * share[1], 100 * share[2], 100 * share[3], rolls, events / 1e6 / t[2], t[3] / 1024 }'
    done
    if [ -n "${PROGRAMS:-}" ]; then
        "$work/kernels" plot "Which stage decides a check, recorded programs" <"$work/shares" >"$plots/radish-recorded.svg"
    fi
}

recorded=$*
if [ "${GENERATED:-yes}" != no ]; then
    generated
fi
if [ -n "${PROGRAMS:-}" ]; then
    programs "$(realpath "$PROGRAMS")"
elif [ "${KERNELS:-no}" = yes ]; then
    kernels
fi
if [ -n "$recorded" ]; then
    recordings
fi
if [ -n "${PROGRAMS:-}" ]; then
    sweep pigz "$work/pigz.rft" 2,4
    length
fi
