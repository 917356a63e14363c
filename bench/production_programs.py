"""Programs with known races, built in several ways and run with the time taken: for bench/production.py.

1. Programs are Debian's sources (bench/runtime/fetch.sh), or kernels of bench/kernels, into which races are put: counters that threads
   change without a lock. They are built under $B/production, and kept.
2. All variants of a program take turns, in an order that is turned round each time, with the uninstrumented program at both ends, so that
   a machine that is busy or uneven disturbs all alike. Medians are compared: the least of a few runs is a lucky moment of the machine. Processor
   time of user and system is compared, and the time on the wall, which is where waiting shows.
3. The command is not measured: what it would hand on to the program is set up here.
"""
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
B = os.path.abspath(os.environ.get("B", "build"))
REDFLAG = os.path.join(B, "redflag")
WORK = os.path.join(B, "production")
SOURCES = os.environ.get("SOURCES", os.path.join(B, "bench", "src"))
os.environ["CCACHE_DISABLE"] = "1"  # a cache may make paths relative: then no line of an object is one of the bitcode's
PROGRAMS = os.environ.get("PROGRAMS", "pigz pbzip2 queue hash tree").split()
ROUNDS = int(os.environ.get("ROUNDS", "4"))
PAIRS = int(os.environ.get("PAIRS", "0"))
TRIALS = int(os.environ.get("TRIALS", "10"))
THREADS = [int(n) for n in os.environ.get("THREADS", "1 4 16 64").split()]
TEXT = int(os.environ.get("TEXT", "400000"))
# What kernels do, in percent of what they do elsewhere: about a second on the wall, since before t_min (doc/chase.md) is over a run may
# wait for more than its share; and less for a trial. The text is as long as pbzip2 needs for that; pigz is faster and has more of it.
PERCENT = {"queue": 340, "hash": 220, "tree": 160}
TRIAL_TEXT = 160000
LONGER = {"pigz": 2}
TRIAL = 40
CLANG = {"REDFLAG_CC": "clang -g", "REDFLAG_CXX": "clang++ -g"} # what `redflag cc` calls
KERNELS = ["queue", "hash", "tree"]
PACKAGES = {"pigz": ["pigz", "zlib"], "pbzip2": ["pbzip2", "bzip2"], "xz": ["xz-utils"], "zstd": ["zstd"], "x264": ["x264"]}
# Without races put into them: only how short Caper's list is.
MORE = [name for name in os.environ.get("MORE", "zstd xz").split() if name not in PROGRAMS]

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
# Small functions that loops of the candidates' functions call: named too, they are inlined there (doc/chase.md).
HELPERS = {kernel: ["@random_next"] for kernel in KERNELS}
ALONE = ["queue"] # only one thread counts: no race of the counting line with itself


def say(text):
    print("bench: %s: %s" % (time.strftime("%H:%M:%S"), text), file=sys.stderr, flush=True)


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


def build(program, variant, cc, cxx, environment=None, percent=None):
    directory = os.path.join(WORK, variant)
    percent = percent or PERCENT.get(program)
    target = os.path.join(directory, program + ("-%d" % percent if program in KERNELS else ""))
    os.makedirs(directory, exist_ok=True)
    if os.path.exists(target):
        return target
    say("building %s/%s" % (variant, program))
    full = dict(os.environ, **(environment or {}))
    source = os.path.join(WORK, "src")
    if program in KERNELS:
        command = cc.split() + ["-O2", "-DKERNEL_PERCENT=%d" % percent, "-I" + TOP, "-pthread", "-o", target, PLACES[program][0], "-lm"]
        subprocess.run(command, cwd=source, env=full, check=True)
    else:
        subprocess.run([os.path.join(TOP, "bench/runtime/build.sh"), source, directory, cc, cxx, program], env=full, check=True)
    if not os.path.exists(target):
        sys.exit("bench: %s cannot be built" % program)
    return target


def builds(program, percent=None):
    """The uninstrumented program, and the one with all hooks; its bitcode lies beside the sources and objects."""
    return (build(program, "native", "clang -g", "clang++ -g", None, percent),
            build(program, "full", REDFLAG + " cc --bitcode", REDFLAG + " c++ --bitcode -std=gnu++98", CLANG, percent))


def shorter(program):
    """The same, which does less, for who looks at every access."""
    return build(program, "shorter", REDFLAG + " cc", "", CLANG, 2) if program in KERNELS else builds(program)[1]


def prepare():
    os.makedirs(os.path.join(WORK, "src"), exist_ok=True)
    packages = [p for name in PROGRAMS + MORE for p in PACKAGES.get(name, [])]
    if not all(os.path.exists(os.path.join(WORK, "src", package)) for package in packages):
        subprocess.run([os.path.join(TOP, "bench/runtime/fetch.sh"), SOURCES] + packages, check=True)
    for package in packages:
        if not os.path.exists(os.path.join(WORK, "src", package)) and os.path.exists(os.path.join(SOURCES, package)):
            subprocess.run(["cp", "-a", os.path.join(SOURCES, package), os.path.join(WORK, "src", package)], check=True)
    kernels = os.path.join(WORK, "src", "kernels")
    if not os.path.exists(kernels):
        subprocess.run(["cp", "-a", os.path.join(TOP, "bench/kernels"), kernels], check=True)
    draw = random.Random(1)
    words = ["".join(draw.choice("etaoinshrdlu") for _ in range(draw.randint(2, 9))) for _ in range(5000)]
    lines = [" ".join(draw.choice(words) for _ in range(6)) + "\n" for _ in range(40000)] # more than any block that is compressed
    for name, count in [("text", TEXT), ("trial", TRIAL_TEXT), ("small", 12000)] + [("text." + p, n * TEXT) for p, n in LONGER.items()]:
        with open(os.path.join(WORK, name), "w") as out:
            for begin in range(0, count, len(lines)):
                out.writelines(lines[:count - begin])


def arguments(program, threads=2, name="text"):
    text = os.path.join(WORK, "text." + program if name == "text" and program in LONGER else name)
    return {"pigz": ["-p", str(threads), "-c", text], "pbzip2": ["-p%d" % threads, "-k", "-c"] + (["-b1"] if name == "small" else []) + [text],
            "xz": ["-T%d" % threads, "-1", "-k", "-c"] + (["--block-size=100KiB"] if name == "small" else []) + [text],
            "zstd": ["-q", "-T%d" % threads, "-3", "-B100K", "-c", text],
            "x264": ["--quiet", "--no-progress", "--threads", str(threads), "--demuxer", "y4m", "-o", os.devnull, os.path.join(WORK, "video")]
            }.get(program, [])


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


GOALS = ("native", "chase-5", "sites", "steady") # what must be known well
LONG = ("litehb", "fullhb", "first")             # what need not, and takes long
UNSURE, MOST = 0.05, 3                           # how well, and how often at most, in multiples of ROUNDS


def rounds_of(name):
    return ROUNDS if name in GOALS else 1 if name in LONG else (ROUNDS + 1) // 2


def unsure(taken):
    """Of the median processor time: about how far it may be off, as a part of it."""
    times = sorted(processor for processor, _ in taken)
    quarter = len(times) // 4
    return (times[-1 - quarter] - times[quarter]) / statistics.median(times) / math.sqrt(len(times))


def medians(variants, before=None):
    """variants: name -> (command, environment), with "native". The median processor and wall time of each. before(name) comes first. If the
    uninstrumented program's own times say little of its median, what has a goal is run more often."""
    times = {name: [] for name in variants}
    others = [name for name in variants if name != "native"]
    for number in range(MOST * ROUNDS):
        if number >= ROUNDS and unsure(times["native"]) < UNSURE:
            break
        turn = [name for name in others if number < rounds_of(name) or (number >= ROUNDS and name in GOALS)]
        for name in ["native"] + (turn if number % 2 == 0 else turn[::-1]) + ["native"]:
            if before:
                before(name)
            command, environment = variants[name]
            status, processor, wall = run(command, environment)
            if status not in (0, 66):
                sys.exit("bench: %s of %s failed: %d" % (name, command[0], status))
            times[name].append((processor, wall))
    return {name: tuple(statistics.median(column) for column in zip(*taken)) for name, taken in times.items()}


def how_often():
    return ("medians of %d runs (LiteHB, FullHB, first runs: 1; what has no goal: %d; uninstrumented: %d), taking turns, and of up to "
            "%d times as many of what has a goal where the uninstrumented program's own times differ much") % (
        ROUNDS, (ROUNDS + 1) // 2, 2 * ROUNDS, MOST)


def mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))



def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    return "%s, %d cores, load %.1f at the end" % (model, os.cpu_count(), os.getloadavg()[0])


# -- plots ------------------------------------------------------------------------------------------------------------------------

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
