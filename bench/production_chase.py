"""What chasing costs and finds: Figures 2 and 3 and Table 2 of the paper behind doc/chase.md. For bench/production.py."""
import json
import os
import random
import subprocess

from production_programs import (ALONE, B, CLANG, HELPERS, PAIRS, REDFLAG, THREADS, TOP, TRIAL, TRIALS, WORK, arguments, build, builds,
                                 calls, how_often, machine, mean, medians, run, svg)


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


def quiet(environment):
    """It is the cost of looking that is compared, not that of symbols."""
    more = dict(environment)
    more["REDFLAG_OPTIONS"] = (more.get("REDFLAG_OPTIONS", "") + ":report_bugs=0").lstrip(":")
    return more


KINDS = ["out", "chase-0", "chase-5", "chase-10", "litehb", "fullhb"]
TITLES = {"out": "taken out", "chase-0": "chase 0%", "chase-5": "chase 5%", "chase-10": "chase 10%", "litehb": "LiteHB",
          "fullhb": "FullHB", "sites": "chase 5%, --sites"}


def figure2(program, lines, others, before):
    """kind -> (processor, wall), as ratios to the uninstrumented program; of other variants, too, which take turns with the first pair's."""
    native, full = builds(program)
    names = os.path.join(WORK, program + ".sites")
    open(names, "w").write("\n".join(lines + HELPERS.get(program, [])) + "\n")
    candidates = build(program, "sites", "%s cc --sites %s" % (REDFLAG, names), "%s c++ --sites %s" % (REDFLAG, names), CLANG)
    everything = [json.loads(line) for line in subprocess.run([REDFLAG, "sites", "--no-libraries", "--format", "jsonl", full],
                                                              capture_output=True, text=True, check=True).stdout.splitlines()]
    draw = random.Random(program)
    known = [calls(full, line) for line in lines]
    pairs = [(known[0], known[program in ALONE])] + [([draw.choice(everything)], [draw.choice(everything)]) for _ in range(PAIRS)]
    ratios = {kind: ([], []) for kind in KINDS + ["sites"] + list(others)}
    more = arguments(program)
    for number, (first, second) in enumerate(pairs):
        text = pair_text(first, second)
        variants = {"native": ([native] + more, {})}
        variants.update({kind: ([full] + more, quiet(setting(kind, text))) for kind in KINDS})
        if number == 0:
            there = [calls(candidates, lines[0]), calls(candidates, lines[program in ALONE])]
            variants["sites"] = ([candidates] + more, quiet(setting("chase-5", pair_text(*there))))
            variants.update(others)
        best = medians(variants, before)
        for kind in ratios:
            if kind in best:
                base = best["native"]
                for i in (0, 1):
                    ratios[kind][i].append(best[kind][i] / base[i])
    return {kind: (mean(a), mean(b)) for kind, (a, b) in ratios.items()}


def table2(program, lines):
    """Of the known races: how many trials of each detector reported it. The pair is taken in both orders, in turns."""
    full = builds(program, TRIAL)[1]
    known = [calls(full, line) for line in lines]
    found = []
    for first, second in ([] if program in ALONE else [(known[0], known[0])]) + [(known[0], known[1])]:
        counts = {}
        for kind in ("chase-5", "litehb"):
            hits = 0
            for trial in range(TRIALS):
                text = pair_text(first, second) if trial % 2 == 0 else pair_text(second, first)
                status, _, _ = run([full] + arguments(program, 2, "trial"), setting(kind, text))
                hits += status == 66
            counts[kind] = hits
        found.append(counts)
    return found


def figure3(lines):
    native, full = builds("pigz")
    there = calls(full, lines[0])
    text = pair_text(there, there)
    rows = []
    for threads in THREADS:
        more = arguments("pigz", threads, "trial")
        best = medians({"native": ([native] + more, {}), "out": ([full] + more, quiet(setting("out", text))),
                      "chase-5": ([full] + more, quiet(setting("chase-5", text))),
                      "litehb": ([full] + more, quiet(setting("litehb", text)))})
        rows.append((threads, best))
    return rows


# -- the page ---------------------------------------------------------------------------------------------------------------------

def page(costs, races, scaling):
    kinds = KINDS + ["sites"]
    text = ["## Chasing one race", "",
            "Programs with known races, put into them by `bench/production.py`; pairs of sites of each: %d; %s. All of it is"
            % (1 + PAIRS, how_often()), "compiled by clang, `sites` with `redflag cc --sites` (of kernels also `@random_next`, which is inlined then), all others with",
            "all hooks. The machine was %s." % machine(), "",
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


def plots(costs, scaling):
    kinds, programs = KINDS + ["sites"], list(costs)
    most = max(min(4, max(c[k][0] for c in costs.values() for k in kinds)), 1.5)
    svg(os.path.join(TOP, "doc/production-chase-cost.svg"), "Processor time, uninstrumented = 1", programs,
        [(TITLES[k], [costs[p][k][0] for p in programs]) for k in kinds], most, True)
    if scaling:
        series = [(TITLES.get(k, k), [best[k][0] for _, best in scaling]) for k in ("native", "out", "chase-5", "litehb")]
        svg(os.path.join(TOP, "doc/production-chase-threads.svg"), "pigz: seconds of processor time by threads",
            [n for n, _ in scaling], series, max(v for _, values in series for v in values) * 1.1, False)


