#!/usr/bin/env python3
"""What chasing and Caper cost and find, on programs with known races: writes doc/benchmarks-production.md and the plots beside it.

  PROGRAMS  which ones (default: pigz pbzip2 queue hash tree; also xz)
  MORE      large programs of which only the pairs are counted (default: zstd xz; also x264)
  ROUNDS    how often what has a goal is run, others less often; medians count (default 4)
  PAIRS     pairs of sites drawn for each program, besides the known races (default 0)
  TRIALS    of Table 2 (default 10)
  THREADS   of Figure 3 (default "1 4 16 64")
  TEXT      lines of text that programs compress; pigz has twice as many (default 400000)

bench/production_programs.py has the programs, production_chase.py and production_caper.py what is measured of them.
"""
import os
import sys

import production_caper as caper
import production_chase as chase
from production_programs import MORE, PROGRAMS, TOP, WORK, inject, prepare, say


def main():
    prepare()
    costs, races, lines, lists = {}, {}, {}, {}
    for program in PROGRAMS:
        lines[program] = inject(program, os.path.join(WORK, "src"))
    for program in PROGRAMS:
        lists[program] = caper.measure(program)
        say("steady state of " + program)
        others, before = caper.variants(program)
        say("costs in " + program)
        costs[program] = lists[program]["cost"] = chase.figure2(program, lines[program], others, before)
        say("races of " + program)
        races[program] = chase.table2(program, lines[program])
    more = {program: caper.measure_more(program) for program in MORE}
    more = {program: result for program, result in more.items() if result}
    scaling = []
    if "pigz" in PROGRAMS:
        say("threads")
        scaling = chase.figure3(lines["pigz"])
    text = ("# Production: measured\n\n`make bench-production` measures all of this and writes this page; "
            "[chase.md](chase.md) and [caper.md](caper.md) say what is measured.\n\n" +
            chase.page(costs, races, scaling) + "\n" + caper.page(lists, more))
    open(os.path.join(TOP, "doc/benchmarks-production.md"), "w").write(text)
    chase.plots(costs, scaling)
    caper.plots(lists)
    sys.stdout.write(text)


main()
