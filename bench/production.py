#!/usr/bin/env python3
"""What chasing costs and finds (Figures 2 and 3 and Table 2 of the paper behind doc/chase.md), on programs with known races.

  PROGRAMS  which ones (default: pigz pbzip2 queue hash tree; also xz)
  ROUNDS    how often each is run; the least time counts (default 5)
  PAIRS     pairs of sites drawn for each program, besides the known races (default 2)
  TRIALS    of Table 2 (default 10)
  THREADS   of Figure 3 (default "1 2 4 8 16 32 64")

1. Programs are Debian's sources (bench/runtime/fetch.sh), or kernels of bench/kernels, into which races are put: counters that threads
   change without a lock. They are built under $B/production, and kept.
2. All variants of a program take turns, so that a busy machine disturbs all alike. Processor time of user and system is compared, and the
   time on the wall, which is where waiting shows.
3. The command is not measured: what it would hand on to the program is set up here.
4. The result is the part of doc/benchmarks-production.md between its marks, and plots beside it.
"""
import json
import math
import os
import random
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
B = os.path.abspath(os.environ.get("B", "build"))
REDFLAG = os.path.join(B, "redflag")
WORK = os.path.join(B, "production")
SOURCES = os.environ.get("SOURCES", os.path.join(B, "bench", "src"))
PROGRAMS = os.environ.get("PROGRAMS", "pigz pbzip2 queue hash tree").split()
ROUNDS = int(os.environ.get("ROUNDS", "5"))
PAIRS = int(os.environ.get("PAIRS", "2"))
TRIALS = int(os.environ.get("TRIALS", "10"))
THREADS = [int(n) for n in os.environ.get("THREADS", "1 2 4 8 16 32 64").split()]
KERNELS = ["queue", "hash", "tree"]
PACKAGES = {"pigz": ["pigz", "zlib"], "pbzip2": ["pbzip2", "bzip2"], "xz": ["xz-utils"]}

# Where races are put: behind the first line with the second text after the line with the first.
COUNT, SEEN = "rf_known_count++;", "rf_known_seen = rf_known_count;"
PLACES = {
    "pigz": ("pigz/pigz.c", [("local void compress_thread(void *dummy) {", "for (;;) {", COUNT),
                             ("local void write_thread(void *dummy) {", "do {", SEEN)]),
    "pbzip2": ("pbzip2/pbzip2.cpp", [("void *consumer (void *q)", "\t{", COUNT), ("void *fileWriter(void *outname)", "\t{", SEEN)]),
    "xz": ("xz-utils/src/liblzma/common/stream_encoder_mt.c",
           [("worker_start(void *thr_ptr)", "while (true) {", COUNT), ("stream_encode_mt(void *coder_ptr", "while (true) {", SEEN)]),
    "queue": ("kernels/queue.c", [("static void *consume", "for (int i", COUNT), ("int main", "for (int i", SEEN)]),
    "hash": ("kernels/hash.c", [("static void *part", "if (!item) {", COUNT), ("static void *part", "for (int i", SEEN)]),
    "tree": ("kernels/tree.c", [("static void *part", "for (int round", COUNT), ("static void *part", "drop(root)", SEEN)]),
}
ALONE = ["queue"] # only one thread counts: no race of the counting line with itself


def say(text):
    print("bench: " + text, file=sys.stderr, flush=True)


# -- building ------------------------------------------------------------------------------------------------------------------------

def inject(program, source):
    """The lines of the known races: [count, seen]."""
    path = os.path.join(source, PLACES[program][0])
    lines = open(path, errors="surrogateescape").read().split("\n")
    if not any("rf_known_count" in line for line in lines):
        for begin, place, text in PLACES[program][1]:
            at = next(i for i, line in enumerate(lines) if line.startswith(begin) and not line.rstrip().endswith(";"))
            at = next(i for i in range(at, len(lines)) if place in lines[i])
            lines.insert(at + 1, text)
        lines.insert(0, "unsigned long rf_known_count, rf_known_seen;")
        open(path, "w", errors="surrogateescape").write("\n".join(lines))
    name = PLACES[program][0]
    return [name + ":%d" % (1 + lines.index(text)) for text in (COUNT, SEEN)]


def build(program, variant, cc, cxx, environment=None):
    directory = os.path.join(WORK, variant)
    target = os.path.join(directory, program)
    os.makedirs(directory, exist_ok=True)
    if os.path.exists(target):
        return target
    say("building %s/%s" % (variant, program))
    full = dict(os.environ, **(environment or {}))
    source = os.path.join(WORK, "src")
    if program in KERNELS:
        command = cc.split() + ["-O2", "-I" + TOP, "-pthread", "-o", target, PLACES[program][0], "-lm"]
        subprocess.run(command, cwd=source, env=full, check=True)
    else:
        subprocess.run([os.path.join(TOP, "bench/runtime/build.sh"), source, directory, cc, cxx, program], env=full, check=True)
    if not os.path.exists(target):
        sys.exit("bench: %s cannot be built" % program)
    return target


def prepare():
    os.makedirs(os.path.join(WORK, "src"), exist_ok=True)
    packages = [p for name in PROGRAMS for p in PACKAGES.get(name, [])]
    if packages:
        subprocess.run([os.path.join(TOP, "bench/runtime/fetch.sh"), SOURCES] + packages, check=True)
    for package in packages:
        if not os.path.exists(os.path.join(WORK, "src", package)):
            subprocess.run(["cp", "-a", os.path.join(SOURCES, package), os.path.join(WORK, "src", package)], check=True)
    kernels = os.path.join(WORK, "src", "kernels")
    if not os.path.exists(kernels):
        subprocess.run(["cp", "-a", os.path.join(TOP, "bench/kernels"), kernels], check=True)
    text = os.path.join(WORK, "text")
    if not os.path.exists(text):
        draw, words = random.Random(1), []
        for _ in range(5000):
            words.append("".join(draw.choice("etaoinshrdlu") for _ in range(draw.randint(2, 9))))
        with open(text, "w") as out:
            for _ in range(400000):
                out.write(" ".join(draw.choice(words) for _ in range(6)) + "\n")


def arguments(program, threads=2):
    text = os.path.join(WORK, "text")
    return {"pigz": ["-p", str(threads), "-c", text], "pbzip2": ["-p%d" % threads, "-k", "-c", text],
            "xz": ["-T%d" % threads, "-1", "-k", "-c", text]}.get(program, [])


# -- running -------------------------------------------------------------------------------------------------------------------------

def run(command, environment):
    """(status, processor seconds, wall seconds)"""
    full = {k: v for k, v in os.environ.items() if k not in ("REDFLAG_OPTIONS", "TSAN_OPTIONS")}
    full.update(environment)
    begin = time.monotonic()
    null = os.open("/dev/null", os.O_RDWR)
    child = os.posix_spawn(command[0], command, full, file_actions=[(os.POSIX_SPAWN_DUP2, null, n) for n in (0, 1, 2)])
    os.close(null)
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, time.monotonic() - begin


def calls(program, name):
    """The calls of a name, in the form of guest/pair.h, and what they do."""
    out = subprocess.run([REDFLAG, "sites", "--no-libraries", "--format", "jsonl", "--at", name, program], capture_output=True,
                         text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def pair_text(first, second):
    def side(sites):
        return sites[0]["build_id"] + "".join("+" + s["offset"][2:] for s in sorted(sites, key=lambda s: int(s["offset"], 16)))
    return ";first=" + side(first) + ";second=" + side(second)


def setting(kind, pair):
    """The environment of a variant."""
    if kind == "native":
        return {}
    if kind == "out":
        return {"LD_LIBRARY_PATH": os.path.join(B, "lib/chase")}
    if kind in ("litehb", "fullhb"):
        return {"LD_LIBRARY_PATH": os.path.join(B, "lib/tsan"), "REDFLAG_CHASE": "seed=0" + pair,
                "REDFLAG_OPTIONS": "detector=%s:report_thread_leaks=0" % kind}
    return {"LD_LIBRARY_PATH": os.path.join(B, "lib/chase"),
            "REDFLAG_CHASE": "rate_ppm=%d;keep_going=1%s" % (int(kind.split("-")[1]) * 10000, pair)}


def least(variants):
    """variants: name -> (command, environment). The least processor and wall time of each, taking turns."""
    best = {}
    for _ in range(ROUNDS):
        for name, (command, environment) in variants.items():
            status, processor, wall = run(command, environment)
            if status not in (0, 66):
                sys.exit("bench: %s of %s failed: %d" % (name, command[0], status))
            old = best.get(name, (1e9, 1e9))
            best[name] = (min(old[0], processor), min(old[1], wall))
    return best


def quiet(environment):
    """It is the cost of looking that is compared, not that of symbols."""
    more = dict(environment)
    more["REDFLAG_OPTIONS"] = (more.get("REDFLAG_OPTIONS", "") + ":report_bugs=0").lstrip(":")
    return more


KINDS = ["out", "chase-0", "chase-5", "chase-10", "litehb", "fullhb"]
TITLES = {"out": "taken out", "chase-0": "chase 0%", "chase-5": "chase 5%", "chase-10": "chase 10%", "litehb": "LiteHB",
          "fullhb": "FullHB", "sites": "chase 5%, --sites"}


def mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def figure2(program, lines):
    """kind -> (processor, wall), as ratios to the uninstrumented program."""
    native = build(program, "native", "gcc -g", "g++ -g")
    gcc = build(program, "gcc", "gcc -g -fsanitize=thread", "g++ -g -fsanitize=thread")
    names = os.path.join(WORK, program + ".sites")
    open(names, "w").write("\n".join(lines) + "\n")
    compilers = {"REDFLAG_CC": "clang -g", "REDFLAG_CXX": "clang++ -g"}
    clang = build(program, "clang-native", "clang -g", "clang++ -g")
    candidates = build(program, "clang-sites", "%s cc --sites %s" % (REDFLAG, names), "%s c++ --sites %s" % (REDFLAG, names), compilers)
    everything = [json.loads(line) for line in subprocess.run([REDFLAG, "sites", "--no-libraries", "--format", "jsonl", gcc],
                                                              capture_output=True, text=True, check=True).stdout.splitlines()]
    draw = random.Random(program)
    known = [calls(gcc, line) for line in lines]
    pairs = [(known[0], known[program in ALONE])] + [([draw.choice(everything)], [draw.choice(everything)]) for _ in range(PAIRS)]
    ratios = {kind: ([], []) for kind in KINDS + ["sites"]}
    more = arguments(program)
    for number, (first, second) in enumerate(pairs):
        text = pair_text(first, second)
        variants = {"native": ([native] + more, {})}
        variants.update({kind: ([gcc] + more, quiet(setting(kind, text))) for kind in KINDS})
        if number == 0:
            there = [calls(candidates, lines[0]), calls(candidates, lines[program in ALONE])]
            variants["clang"] = ([clang] + more, {})
            variants["sites"] = ([candidates] + more, quiet(setting("chase-5", pair_text(*there))))
        best = least(variants)
        for kind in ratios:
            if kind in best:
                base = best["clang" if kind == "sites" else "native"]
                for i in (0, 1):
                    ratios[kind][i].append(best[kind][i] / base[i])
    return {kind: (mean(a), mean(b)) for kind, (a, b) in ratios.items()}


def table2(program, lines):
    """Of the known races: how many trials of each detector reported it. The pair is taken in both orders, in turns."""
    gcc = os.path.join(WORK, "gcc", program)
    known = [calls(gcc, line) for line in lines]
    found = []
    for first, second in ([] if program in ALONE else [(known[0], known[0])]) + [(known[0], known[1])]:
        counts = {}
        for kind in ("chase-5", "litehb"):
            hits = 0
            for trial in range(TRIALS):
                text = pair_text(first, second) if trial % 2 == 0 else pair_text(second, first)
                status, _, _ = run([gcc] + arguments(program), setting(kind, text))
                hits += status == 66
            counts[kind] = hits
        found.append(counts)
    return found


def figure3(lines):
    native, gcc = os.path.join(WORK, "native", "pigz"), os.path.join(WORK, "gcc", "pigz")
    there = calls(gcc, lines[0])
    text = pair_text(there, there)
    rows = []
    for threads in THREADS:
        more = arguments("pigz", threads)
        best = least({"native": ([native] + more, {}), "out": ([gcc] + more, quiet(setting("out", text))),
                      "chase-5": ([gcc] + more, quiet(setting("chase-5", text))),
                      "litehb": ([gcc] + more, quiet(setting("litehb", text)))})
        rows.append((threads, best))
    return rows


# -- the page ------------------------------------------------------------------------------------------------------------------------

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"]


def svg(path, title, places, series, most, bars):
    """series: [(name, [value for each place])]"""
    width, height, left, right, top, bottom = 760, 400, 60, 150, 46, 50
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12">'
           % (width, height, width, height), '<rect width="100%" height="100%" fill="white"/>',
           '<text x="%d" y="26" font-size="15">%s</text>' % (left, title)]
    inner, high = width - left - right, height - top - bottom
    def y(value):
        return top + high * (1 - min(value, most) / most)
    step = 10 ** math.floor(math.log10(most / 2))
    step = step if most / step <= 10 else 2 * step if most / step <= 20 else 5 * step
    for i in range(int(most / step) + 1):
        out.append('<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>' % (left, y(i * step), left + inner, y(i * step)))
        out.append('<text x="%d" y="%.1f" text-anchor="end">%g</text>' % (left - 6, y(i * step) + 4, i * step))
    room = inner / len(places)
    for p, place in enumerate(places):
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%s</text>' % (left + room * (p + 0.5), height - bottom + 18, place))
    for s, (name, values) in enumerate(series):
        colour = COLOURS[s % len(COLOURS)]
        out.append('<rect x="%d" y="%d" width="10" height="10" fill="%s"/><text x="%d" y="%d">%s</text>'
                   % (width - right + 12, top + 18 * s, colour, width - right + 27, top + 9 + 18 * s, name))
        if bars:
            thin = room * 0.8 / len(series)
            for p, value in enumerate(values):
                out.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>'
                           % (left + room * (p + 0.1) + thin * s, y(value), thin, y(0) - y(value), colour))
        else:
            points = " ".join("%.1f,%.1f" % (left + room * (p + 0.5), y(v)) for p, v in enumerate(values))
            out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' % (points, colour))
    open(path, "w").write("\n".join(out + ["</svg>"]) + "\n")


def page(costs, races, scaling):
    kinds = KINDS + ["sites"]
    text = ["## Chasing one race", "",
            "Programs with known races, put into them by `bench/production.py`; %d pairs of sites each; least of %d runs. `sites` is built"
            % (1 + PAIRS, ROUNDS), "with `redflag cc --sites` (clang) and compared with clang's own code, all others with gcc's. The machine"
            " was %s." % machine(), "",
            "### Cost (Figure 2)", "", "Processor time, and in parentheses the time on the wall, as multiples of the uninstrumented program.", "",
            "| program | " + " | ".join(TITLES[k] for k in kinds) + " |", "|---" * (len(kinds) + 1) + "|"]
    for program, cost in costs.items():
        text.append("| %s | " % program + " | ".join("%.2f (%.2f)" % cost[k] for k in kinds) + " |")
    text.append("| mean | " + " | ".join("%.2f (%.2f)" % tuple(mean([c[k][i] for c in costs.values()]) for i in (0, 1)) for k in kinds) + " |")
    text += ["", "![cost](production-chase-cost.svg)", "", "### Races found (Table 2)", "",
             "Known races of each program that were reported in at least one (two) of %d trials, in half of which the pair is turned round."
             % TRIALS, "", "| program | races | chase 5% | LiteHB | both | trials: chase, LiteHB |", "|---|---|---|---|---|---|"]
    for program, found in races.items():
        def at_least(kind, n):
            return sum(r[kind] >= n for r in found)
        text.append("| %s | %d | %d (%d) | %d (%d) | %d | %s |" % (
            program, len(found), at_least("chase-5", 1), at_least("chase-5", 2), at_least("litehb", 1), at_least("litehb", 2),
            sum(r["chase-5"] > 0 and r["litehb"] > 0 for r in found),
            "; ".join("%d, %d" % (r["chase-5"], r["litehb"]) for r in found)))
    if scaling:
        text += ["", "### Threads (Figure 3)", "", "pigz, seconds of processor time (on the wall).", "",
                 "| threads | native | taken out | chase 5% | LiteHB |", "|---|---|---|---|---|"]
        for threads, best in scaling:
            text.append("| %d | " % threads + " | ".join("%.2f (%.2f)" % best[k] for k in ("native", "out", "chase-5", "litehb")) + " |")
        text += ["", "![threads](production-chase-threads.svg)"]
    return "\n".join(text) + "\n"


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    return "%s, %d cores, load %.1f at the end" % (model, os.cpu_count(), os.getloadavg()[0])


def write(costs, races, scaling):
    path, begin, end = os.path.join(TOP, "doc/benchmarks-production.md"), "<!-- chase -->\n", "<!-- end of chase -->\n"
    old = open(path).read() if os.path.exists(path) else "# Production: measured\n\n`make bench-production` writes this page.\n\n"
    if begin not in old:
        old += begin + end
    before, rest = old.split(begin, 1)
    open(path, "w").write(before + begin + page(costs, races, scaling) + rest[rest.index(end):])
    kinds, programs = KINDS + ["sites"], list(costs)
    most = max(min(4, max(c[k][0] for c in costs.values() for k in kinds)), 1.5)
    svg(os.path.join(TOP, "doc/production-chase-cost.svg"), "Processor time, uninstrumented = 1", programs,
        [(TITLES[k], [costs[p][k][0] for p in programs]) for k in kinds], most, True)
    if scaling:
        series = [(TITLES.get(k, k), [best[k][0] for _, best in scaling]) for k in ("native", "out", "chase-5", "litehb")]
        svg(os.path.join(TOP, "doc/production-chase-threads.svg"), "pigz: seconds of processor time by threads",
            [n for n, _ in scaling], series, max(v for _, values in series for v in values) * 1.1, False)


def main():
    prepare()
    costs, races, lines = {}, {}, {}
    for program in PROGRAMS:
        lines[program] = inject(program, os.path.join(WORK, "src"))
        say("cost of " + program)
        costs[program] = figure2(program, lines[program])
        say("races of " + program)
        races[program] = table2(program, lines[program])
    scaling = []
    if "pigz" in PROGRAMS:
        say("threads")
        scaling = figure3(lines["pigz"])
    write(costs, races, scaling)
    sys.stdout.write(page(costs, races, scaling))


main()
