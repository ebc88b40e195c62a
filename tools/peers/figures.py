# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""What the figures of launches say: which count, their medians, the best peer of a cell, its goal, the table.

Everything here is arithmetic on records, so that it can be tested on records of a file. A record is one measurement of
one launch: op, ranks, bytes, placement, config ("pldk", or "PEER:SETTING"), median (ns), probe_before and probe_after.
A cell is (op, ranks, bytes); it is compared in each state of the machine for itself.
"""

import collections
import math
import statistics

CLASS_CHANGE = 1.25  # probes that differ by more: the machine changed while the launch ran
STATE_LIMIT_NS = 200
AIM = 1.1
PRIVATE_GOAL_BYTES = (4096, 1 << 20)


def state_of(probe_ns):
    """F: the CPUs share a cache; S: they do not. A machine with one CPU has no probe and is always S."""
    return "F" if probe_ns is not None and 0 <= probe_ns < STATE_LIMIT_NS else "S"


def is_kept(record):
    before, after = record["probe_before"], record["probe_after"]
    if before is None or after is None:
        return True
    return max(before, after) <= CLASS_CHANGE * min(before, after)


def size_text(n):
    for unit, name in ((1 << 20, "M"), (1 << 10, "K")):
        if n >= unit and n % unit == 0:
            return f"{n // unit}{name}"
    return str(n)


class Figures:
    """All records, by cell, state and contestant: ("pldk", placement) or ("PEER:SETTING", "private")."""

    def __init__(self):
        self.kept = collections.defaultdict(list)  # (cell, state, contestant) -> medians in ns
        self.probes = collections.defaultdict(list)  # the same -> probes
        self.tries = collections.Counter()  # (cell, contestant) -> launches, dropped ones too
        self.providers = {}  # cell -> provider of pldk
        self.modes = {}  # cell -> mode of pldk

    def add(self, record):
        cell = record["op"], record["ranks"], record["bytes"]
        contestant = record["config"], record["placement"]
        self.tries[cell, contestant] += 1
        if record["config"] == "pldk":
            self.providers[cell] = record["provider"]
            self.modes[cell] = record["mode"]
        if not is_kept(record):
            return
        key = cell, state_of(record["probe_before"]), contestant
        self.kept[key].append(record["median"])
        if record["probe_before"] is not None:
            self.probes[key].append(record["probe_before"])

    def count(self, cell, state, contestant):
        return len(self.kept.get((cell, state, contestant), ()))

    def median(self, cell, state, contestant):
        return statistics.median(self.kept[cell, state, contestant])

    def cells(self):
        return sorted({key[0] for key in self.tries})

    def peers(self, cell, state):
        """Those with figures of this cell, fastest first."""
        names = {key[2] for key in self.kept if key[:2] == (cell, state) and key[2][0] != "pldk"}
        return sorted(names, key=lambda name: self.median(cell, state, name))

    def placements(self, cell):
        return sorted({key[1][1] for key in self.tries if key[0] == cell and key[1][0] == "pldk"}, reverse=True)

    def wants(self, cell, state, peer):
        """Shall this peer run again? Two launches of each choose the best two; one is enough if it is far behind."""
        mine = self.count(cell, state, peer)
        ranking = self.peers(cell, state)
        if peer in ranking[:2]:
            return True
        if mine == 0:
            return self.tries[cell, peer] < 4  # one that is always dropped must not hold up the rest
        return mine < 2 and self.median(cell, state, peer) < 2 * self.median(cell, state, ranking[0])

    def is_finished(self, cell, state, peers, placements, launches):
        """Are there enough figures of pldk and of the best two peers, and has every peer been looked at?"""
        best = self.peers(cell, state)[:2]
        if any(self.count(cell, state, ("pldk", p)) < launches for p in placements):
            return False
        if any(self.count(cell, state, peer) < launches for peer in best):
            return False
        return bool(best) and not any(peer not in best and self.wants(cell, state, peer) for peer in peers)

    def results(self, goals, launches):
        """A dictionary for each cell, placement and state that has enough launches of pldk and of a peer."""
        for cell in self.cells():
            for placement in self.placements(cell):
                for state in "FS":
                    mine = cell, state, ("pldk", placement)
                    peers = [p for p in self.peers(cell, state) if self.count(cell, state, p) >= launches]
                    if self.count(*mine) < launches or not peers:
                        continue
                    yield self.result(cell, placement, state, peers[0], goals)

    def result(self, cell, placement, state, peer, goals):
        op, ranks, nbytes = cell
        mine, theirs = ("pldk", placement), (cell, state, peer)
        ns, peer_ns = self.median(cell, state, mine), self.median(*theirs)
        goal, goal_us = goal_of(goals, cell, placement, state)
        ratio = peer_ns / ns
        met = None if goal is None else ratio >= goal and (goal_us is None or ns / 1e3 <= goal_us)
        probes = self.probes.get((cell, state, mine))
        return {
            "op": op, "ranks": ranks, "bytes": nbytes, "mode": self.modes[cell], "placement": placement,
            "provider": self.providers[cell], "state": state,
            "probe_ns": round(statistics.median(probes), 1) if probes else None,
            "median_us": round(ns / 1e3, 4), "peer": peer[0], "peer_median_us": round(peer_ns / 1e3, 4),
            "ratio": round(ratio, 3), "goal": goal, "goal_us": goal_us, "met": met,
            "launches": min(self.count(cell, state, mine), self.count(*theirs)),
        }


def read_goals(path):
    """(op, ranks) -> [(bytes, {"F": (ratio, us or None), "S": ...})]"""
    goals = collections.defaultdict(list)
    with open(path, encoding="utf-8") as rows:
        for row in rows:
            if row.startswith("#") or not row.strip():
                continue
            op, ranks, nbytes, *numbers = row.rstrip("\n").split("\t")
            numbers = [float(n) for n in numbers] + [None] * (4 - len(numbers))
            by_state = {"F": (numbers[0], numbers[2]), "S": (numbers[1], numbers[3])}
            goals[op, int(ranks)].append((int(nbytes), by_state))
    return goals


def goal_of(goals, cell, placement, state):
    """The ratio to reach, and the time not to exceed; None where nothing is asked."""
    op, ranks, nbytes = cell
    if placement == "private" and nbytes:
        first, last = PRIVATE_GOAL_BYTES
        return (1.0 if first <= nbytes <= last else None), None
    rows = goals.get((op, ranks))
    if not rows:
        return AIM, None
    return min(rows, key=lambda row: abs(math.log2(max(row[0], 1)) - math.log2(max(nbytes, 1))))[1][state]


def table(results):
    lines = [f"{'op':15}{'ranks':>5}{'bytes':>6} {'data in':8}{'state':>5}{'pldk us':>12}{'peer us':>12}"
             f"{'ratio':>8}{'goal':>7} {'met':4} best peer (launches)"]
    for r in results:
        goal = "-" if r["goal"] is None else f"{r['goal']:g}"
        met = "-" if r["met"] is None else "yes" if r["met"] else "no"
        if r["goal_us"] is not None:
            met += f" (<= {r['goal_us']:g} us)"
        lines.append(f"{r['op']:15}{r['ranks']:5}{size_text(r['bytes']):>6} {r['placement']:8}{r['state']:>5}"
                     f"{r['median_us']:12.3f}{r['peer_median_us']:12.3f}{r['ratio']:8.2f}{goal:>7} {met:4}"
                     f" {r['peer']} ({r['launches']})")
    return lines


def verdict(what, results):
    """No cell slower than the best peer?"""
    slower = [r for r in results if r["ratio"] < 1]
    if not results:
        return [f"{what}: nothing was compared"]
    if not slower:
        return [f"{what}: no cell is slower than the best peer: holds in {len(results)} of {len(results)}"]
    lines = [f"{what}: no cell is slower than the best peer: DOES NOT HOLD, slower in {len(slower)} of {len(results)}:"]
    for r in slower:
        cell = f"{r['op']} of {r['ranks']} ranks, {size_text(r['bytes'])}, state {r['state']}"
        lines.append(f"    {cell}: {r['ratio']:.2f}")
    return lines


def closing_lines(figures, results):
    """What the table as a whole says."""
    # A barrier has no data; it counts as data in windows.
    first, last = PRIVATE_GOAL_BYTES
    windows = [r for r in results if r["placement"] == "window" or not r["bytes"]]
    middle = [r for r in results if r["placement"] == "private" and first <= r["bytes"] <= last]
    asked = [r for r in results if r["met"] is not None]
    lines = verdict("data in windows", windows) + verdict("data in private memory, 4 KiB to 1 MiB", middle)
    lines.append(f"goals: {sum(r['met'] for r in asked)} of {len(asked)} are met")
    cells = figures.cells()
    for state, meaning in (("F", "probe below 200 ns"), ("S", "probe of 200 ns or more")):
        seen = {(r["op"], r["ranks"], r["bytes"]) for r in results if r["state"] == state}
        lines.append(f"state {state} ({meaning}): " + (f"compared in {len(seen)} of {len(cells)} cells" if seen
                                                       else "did not occur long enough to compare"))
    done = {(r["op"], r["ranks"], r["bytes"]) for r in results}
    missing = [c for c in cells if c not in done]
    if missing:
        lines.append("unfinished, run it again to go on: " +
                     ", ".join(f"{op} of {ranks} {size_text(nbytes)}" for op, ranks, nbytes in missing))
    return lines
