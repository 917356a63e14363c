"""What Caper costs and how short its list is: Figure 4 and Tables 3 and 4 of the paper behind doc/caper.md. For bench/production.py.

1. One build, by `redflag cc --bitcode` with clang, is analysed, watched and measured. A pair is two lines of source.
2. Known races are those that FastTrack reports in the runs that Caper watches; each must be in every list, and what is missing is said.
3. The runs of Tables 3 and 4 have a smaller input: dynamic alias analysis looks at every access. For it, kernels do less still.
"""
import glob
import json
import os
import subprocess
import sys

from production_programs import (B, CLANG, KERNELS, PACKAGES, REDFLAG, TOP, TRIAL, WORK, arguments, build, builds, how_often, machine, mean, say, shorter,
                                 svg)

WATCHED = 2 # runs that Caper watches beside FastTrack
LONGEST = 6 # runs after which it is taken as steady, though each has found something new


OTHERS = ("ztest", "have_pthread") # programs of their own, which the build makes on its way


def bitcode(program):
    """The bitcode of the instrumented program."""
    if program in KERNELS:
        return glob.glob(os.path.join(WORK, "src", program + ".bc"))
    found = []
    for package in PACKAGES[program]:
        found += glob.glob(os.path.join(WORK, "full", "work", package, "**", "*.bc"), recursive=True)
    return [name for name in sorted(found) if not any(other in name for other in OTHERS)]


def lines(pairs):
    """Lines 'SITE SITE' as a set of unordered pairs of FILE:LINE, by the last two parts of the path."""
    def short(site):
        return sys.intern("/".join(site.split("/")[-2:]))
    return {tuple(sorted(map(short, pair.split()[:2]))) for pair in pairs if len(pair.split()) >= 2}


def pairs_of(program, *options):
    """The file of its static pairs, with its facts beside it; made again when the bitcode or the analysis is newer."""
    path, files = os.path.join(WORK, program + ".pairs"), bitcode(program)
    newest = max(map(os.path.getmtime, files + [os.path.join(B, "lib/redflag/redflag-static")]))
    if not os.path.exists(path) or os.path.getmtime(path) < newest:
        say("static pairs of " + program)
        subprocess.run([REDFLAG, "static", "--facts", path + ".facts", "-o", path + ".new"] + list(options) + files, check=True)
        os.rename(path + ".new", path)
    return path


def grouped(path):
    """How many pairs there are in a list of groups; and is this one of them?"""
    member, size, together, count = {}, {}, set(), 0
    for words in map(str.split, open(path)):
        if words[1] == "=":
            size[words[0]] = len(words) - 2
            for site in words[2:]:
                member.setdefault("/".join(site.split("/")[-2:]), set()).add(words[0])
            continue
        for other in words[1].split(","):
            count += size[other] * (size[other] + 1) // 2 if other == words[0] else size[words[0]] * size[other]
            together |= {(words[0], other), (other, words[0])}
    return count, lambda pair: any((one, other) in together for one in member.get(pair[0], ()) for other in member.get(pair[1], ()))


def measure_more(program):
    """How many pairs Caper leaves of a large program, in which no races were put."""
    if not all(os.path.exists(os.path.join(WORK, "src", package)) for package in PACKAGES[program]):
        return None
    if program == "x264" and not os.path.exists(os.path.join(WORK, "video")):
        subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", "-o", os.path.join(WORK, "input"), os.path.join(TOP, "bench/runtime/input.c"), "-lm"], check=True)
        with open(os.path.join(WORK, "video"), "w") as out:
            subprocess.run([os.path.join(WORK, "input"), "video", "4"], stdout=out, check=True)
    instrumented = build(program, "full", REDFLAG + " cc --bitcode", REDFLAG + " c++ --bitcode -std=gnu++98", CLANG)
    path, state = pairs_of(program, "-f", "groups"), os.path.join(WORK, program + ".caper")
    for old in (state, state + ".idle"):
        if os.path.exists(old):
            os.remove(old)
    say("Caper of " + program)
    small, known = arguments(program, 2, "trial" if program == "zstd" else "small"), set() # zstd has threads from 512 KB on
    for _ in range(WATCHED):
        quietly([REDFLAG, "caper", "-q", "--pairs", path, "--state", state, "--", instrumented] + small)
        known |= races(instrumented, small)
    count, has = grouped(path)
    dynamic, unseen = 0, set(known)
    with subprocess.Popen([REDFLAG, "caper", "--pairs", path, "--state", state, "--show"], stdout=subprocess.PIPE, text=True) as shown:
        for line in shown.stdout: # there may be millions
            dynamic += 1
            if any(pair[0] in line for pair in unseen):
                unseen -= lines([line])
    missing = ({pair for pair in known if not has(pair)}, unseen)
    for name, pairs in zip(("static", "caper"), missing):
        for pair in sorted(pairs):
            say("%s: %s does not have the race of %s and %s" % (program, name, pair[0], pair[1]))
    return {"static": count, "caper": dynamic, "known": len(known), "missing": tuple(map(len, missing))}


def site_lines(program):
    """name of a site -> FILE:LINE"""
    out = subprocess.run([REDFLAG, "sites", "--no-libraries", "--format", "jsonl", program], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in out.splitlines():
        site = json.loads(line)
        found[site["offset"]] = "%s:%d" % ("/".join(site["file"].split("/")[-2:]), site["line"]) if site.get("file") and site.get("line") else site["offset"]
    return found


def environment(**options):
    full = {k: v for k, v in os.environ.items() if k not in ("REDFLAG_OPTIONS", "TSAN_OPTIONS")}
    full.update(options)
    return full


def quietly(command, env=None):
    status = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=env or environment())
    if status.returncode not in (0, 66):
        sys.exit("bench: %s: %d\n%s" % (" ".join(command), status.returncode, status.stderr.decode(errors="replace")[-2000:]))


def first_place(frames):
    """The first frame of the program itself: what libc does for it counts where it was called."""
    for frame in frames:
        if frame.get("file") and frame.get("line"):
            return "%s:%d" % ("/".join(frame["file"].split("/")[-2:]), frame["line"])
    return None


def races(program, more):
    """What FastTrack reports, as pairs of lines."""
    path = os.path.join(WORK, "races.jsonl")
    if os.path.exists(path):
        os.remove(path)
    quietly([REDFLAG, "run", "--format=jsonl", "--output", path, "--no-suppress-equal-addresses", "--no-report-thread-leaks", "--", program] + more)
    found = set()
    for line in open(path) if os.path.exists(path) else []:
        report = json.loads(line)
        sides = [first_place(access["stack"]) for access in report.get("accesses", [])]
        if len(sides) == 2 and all(sides):
            found.add(tuple(sorted(sides)))
    return found


def aliases(program, more, places):
    path = os.path.join(WORK, "aliases")
    if os.path.exists(path):
        os.remove(path)
    quietly([REDFLAG, "run", "-d", "alias", "--pairs", path, "--", program] + more)
    found = set()
    for line in open(path) if os.path.exists(path) else []:
        pair = []
        for site in line.split():
            offset = site.split("+")[1]
            pair.append(places.get(offset) or symbol(program, offset))
        found.add(tuple(sorted(pair)))
    return found


KNOWN_SYMBOLS = {}


def symbol(program, offset):
    """The line of a call of libc's, which is no site of a hook."""
    if (program, offset) not in KNOWN_SYMBOLS:
        out = subprocess.run(["addr2line", "-e", program, offset], capture_output=True, text=True).stdout.split()
        KNOWN_SYMBOLS[program, offset] = "/".join(out[0].split("/")[-2:]) if out and not out[0].startswith("?") else offset
    return KNOWN_SYMBOLS[program, offset]


def counts(program, more):
    """offset of a site -> how often it was executed"""
    library = os.path.join(WORK, "count_sites.so")
    if not os.path.exists(library):
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, os.path.join(TOP, "bench/count_sites.c")], check=True)
    path = os.path.join(WORK, "counts")
    quietly([program] + more, environment(LD_PRELOAD=library, LD_LIBRARY_PATH=os.path.join(B, "lib/chase"), COUNT_SITES=path))
    found = {}
    for line in open(path):
        offset, count = line.split()
        found[offset] = found.get(offset, 0) + int(count)
    return found


def share(counted, places, pairs):
    """Of the accesses that were executed, those at a site that is in a pair."""
    named = {line for pair in pairs for line in pair}
    whole = sum(counted.values())
    return sum(n for offset, n in counted.items() if places.get(offset) in named) / whole if whole else 0


def measure(program):
    """What the tables and the figure need to know of a program."""
    instrumented = builds(program, TRIAL)[1] # it does no more than in a trial
    pairs_path, state = pairs_of(program), os.path.join(WORK, program + ".caper")
    static = lines(open(pairs_path))
    small = arguments(program, 2, "small")
    for old in (state, state + ".idle"):
        if os.path.exists(old):
            os.remove(old)
    say("Caper and aliases of " + program)
    known = set()
    for _ in range(WATCHED):
        quietly([REDFLAG, "caper", "-q", "--pairs", pairs_path, "--state", state, "--", instrumented] + small)
        known |= races(instrumented, small)
    shown = subprocess.run([REDFLAG, "caper", "--pairs", pairs_path, "--state", state, "--show"], capture_output=True, text=True, check=True)
    dynamic = lines(shown.stdout.splitlines())
    places = site_lines(instrumented)
    alias = aliases(shorter(program), small, site_lines(shorter(program)))
    counted = counts(instrumented, small)
    result = {"static": len(static), "caper": len(dynamic), "alias": len(alias), "known": len(known),
              "missing": (len(known - static), len(known - dynamic), len(known - alias)),
              "share": tuple(share(counted, places, pairs) for pairs in (static, dynamic, alias))}
    for name, found in (("static", static), ("caper", dynamic), ("alias", alias)):
        for pair in sorted(known - found):
            say("%s: %s does not have the race of %s and %s" % (program, name, pair[0], pair[1]))
    return result


def variants(program):
    """What Figure 4 compares, for medians(), and what must come before each run."""
    instrumented, more = builds(program)[1], arguments(program)
    pairs_path = os.path.join(WORK, program + ".pairs")
    state = os.path.join(WORK, program + ".long.caper")
    first, none = state + ".first", state + ".none"
    for old in (state, state + ".idle"):
        if os.path.exists(old):
            os.remove(old)
    for _ in range(LONGEST): # a run that finds nothing new, and one that makes the list for the next
        steady = os.path.exists(state) and "\nz\n" in open(state).read()
        quietly([REDFLAG, "caper", "-q", "--pairs", pairs_path, "--state", state, "--", instrumented] + more)
        if steady:
            break
    fresh = ["-" + line[1:] if line.startswith("+") else line for line in open(state).read().split("\n")]
    fresh = "\n".join(line for line in fresh if line[:2] not in ("a ", "! ", "z"))
    open(none, "w").write("\n")
    stores = [line for line in open(state + ".idle") if line.startswith("o ")]
    open(none + ".idle", "w").writelines(stores)
    open(first + ".idle", "w").writelines(stores)

    def setting(path):
        return {"LD_LIBRARY_PATH": os.path.join(B, "lib/tsan"), "REDFLAG_CAPER": path, "REDFLAG_CAPER_IDLE": path + ".idle",
                "REDFLAG_OPTIONS": "escape=1:report_thread_leaks=0:exitcode=0"}

    def before(name):
        if name == "first":
            open(first, "w").write(fresh)
    return {"escape": ([instrumented] + more, setting(none)), "first": ([instrumented] + more, setting(first)),
            "steady": ([instrumented] + more, setting(state))}, before


TITLES = {"out": "taken out", "escape": "escape analysis", "first": "first run", "steady": "steady state"}


def page(results, more):
    kinds = list(TITLES)
    text = ["## Caper", "", "The same programs, built once with `redflag cc --bitcode` (clang); %s. The machine was %s." % (how_often(), machine()), "",
            "### Cost (Figure 4)", "",
            "Processor time, and in parentheses the time on the wall, as multiples of the uninstrumented program. *Taken out*: no hook is left,",
            "what the instrumented code itself costs. *Escape analysis*: no site is looked for, but what has escaped is known. *First run*: no",
            "site is known yet. *Steady state*: earlier runs have found what escapes.", "",
            "| program | " + " | ".join(TITLES[k] for k in kinds) + " |", "|---" * (len(kinds) + 1) + "|"]
    for program, result in results.items():
        text.append("| %s | " % program + " | ".join("%.2f (%.2f)" % result["cost"][k] for k in kinds) + " |")
    text.append("| mean | " + " | ".join("%.2f (%.2f)" % tuple(mean([r["cost"][k][i] for r in results.values()]) for i in (0, 1)) for k in kinds) + " |")
    text += ["", "![cost](production-caper-cost.svg)", "", "### Potential races (Table 3)", "",
             "Pairs of source lines. *Known*: reported by FastTrack in the runs that Caper watched (%d). In brackets: known races that the list" % WATCHED,
             "does not have. Programs without races put into them (%s) were watched with a small input, and without alias analysis." % ", ".join(more), "", "| program | known | static | Caper | alias | Caper of static |", "|---|---|---|---|---|---|"]
    for program, r in results.items():
        def one(kind, i):
            return "{:,}".format(r[kind]) + (" [%d]" % r["missing"][i] if r["missing"][i] else "")
        text.append("| %s | %d | %s | %s | %s | %.1f%% |" % (program, r["known"], one("static", 0), one("caper", 1), one("alias", 2),
                                                        100 * r["caper"] / max(1, r["static"])))
    for program, r in more.items():
        both = ["{:,}".format(r[kind]) + (" [%d]" % r["missing"][i] if r["missing"][i] else "") for i, kind in enumerate(("static", "caper"))]
        text.append("| %s | %d | %s | %s | - | %.1f%% |" % (program, r["known"], both[0], both[1], 100 * r["caper"] / max(1, r["static"])))
    text += ["", "### Accesses (Table 4)", "", "The share of executed plain accesses that are at a site of a pair.", "",
             "| program | static | Caper | alias |", "|---|---|---|---|"]
    for program, r in results.items():
        text.append("| %s | " % program + " | ".join("%.1f%%" % (100 * s) for s in r["share"]) + " |")
    return "\n".join(text) + "\n"


def plots(results):
    programs = list(results)
    most = max(1.5, min(6, max(r["cost"][k][0] for r in results.values() for k in TITLES)))
    svg(os.path.join(TOP, "doc/production-caper-cost.svg"), "Caper: processor time, uninstrumented = 1", programs,
        [(TITLES[k], [results[p]["cost"][k][0] for p in programs]) for k in TITLES], most, True)
