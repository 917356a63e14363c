#!/bin/sh
# What programs cost on hardware with RADISH: the tables of doc/radish.md on standard output, its plots into PLOTS.
#
#   bench/radish.sh [TRACE.rft ...]     recorded executions come after the kernels
#
#   REDFLAG  the command (default build/redflag)
#   B        the build that has libredflag.a (default build)
#   PLOTS    directory for the plots (default doc)
#   WORK     directory for the traces (default a temporary one; about 60 MB)
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

traces=
for kernel in $("$work/kernels" list); do
    say "trace of $kernel"
    "$work/kernels" make "$kernel" "$work/$kernel.rft"
    traces="$traces $work/$kernel.rft"
done
for trace in "$@"; do
    traces="$traces $trace"
done

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

echo "### The default machine"
echo
echo "| Program | Million events | Slowdown | By permission | By hardware | In software | Metadata lines evicted or cleaned | Bus and memory, with over without |"
echo "|---|---:|---:|---:|---:|---:|---:|---:|"
: >"$work/shares"
for trace in $traces; do
    name=$(basename "$trace" .rft)
    say "simulate $name"
    simulate base "$trace"
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
for trace in $traces; do
    name=$(basename "$trace" .rft)
    say "choices for $name"
    row="| $name"
    for choice in "" "-s encoding=compact" "-s handlers=other" "-s l1_bytes=4K -s l2_bytes=16K -s llc_bytes=256K"; do
        # shellcheck disable=SC2086 # options
        simulate choice "$trace" $choice
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

# The numbers of a plot are in its marks.
echo
echo "### Cache sizes and cores"
for name in stencil particles; do
    say "sweep of $name"
    # from there, as the plot's title is the trace's name
    (cd "$work" && "$redflag" simulate --sweep --sweep-cores 2,4,8 --sweep-sizes 256K,512K,1M,4M "$name.rft" \
        -o "$plots/radish-$name.svg")
    echo
    echo "| $name, cores | 256K | 512K | 1M | 4M |"
    echo "|---:|---:|---:|---:|---:|"
    sed -n 's|.*<title>\(.*\)</title></circle>|\1|p' "$plots/radish-$name.svg" | awk '{ v[NR] = $1 }
        END { for (i = 0; i < 3; i++) { printf "| %d", 2 ^ (i + 1); for (j = 1; j <= 4; j++) printf " | %.2fx", v[i * 4 + j]; print " |" } }'
done
