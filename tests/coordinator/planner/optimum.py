#!/usr/bin/env python3
"""The fastest plan of every point that `gimbal plan --dump-costs` wrote, by an algorithm of our own.

usage: optimum.py COSTS.json   prints a line per point: its shortest step in seconds, or "inf".

It reads the costs and nothing else; their form is at the top of coordinator/planner/dump.c.
Blocks are placed from the first to the last: a state is stage and strategy of the block just placed
(and, where a weight is tied, the first block's class), with the partial plans that are best in
something."""
import json
import math
import sys
from operator import le

F, B, ONCE = range(3)
BESIDE, STATE, SAVED, COMMUNICATION, FORWARD, OTHER, PASSING = range(7)
NOTHING = [0] * 10


def on_ranks(cost, count):
    """Of a cost the bytes on each rank of its stage: one after the other, or once for all."""
    ranks = [cost[i:i + 7] for i in range(3, len(cost), 7)]
    return ranks if len(ranks) == count else ranks * count


class Partial:
    """Closed stages: the sum of T, the largest T, the sum of B, and the largest once - sum of B
    before. The open one: F, B, once; per rank additive bytes, the largest transient and the largest
    beside."""
    total = longest = behind = f = b = once = 0
    rest = -math.inf
    ranks = ()

    def key(self):
        return (self.total, self.longest, -self.behind, self.rest, self.f + self.b, -self.b,
                self.once) + tuple(number for rank in self.ranks for number in rank)


def add(partial, stage, cost, peak):
    """peak: of a rank's bytes what is there for a while."""
    new = Partial()
    new.total, new.longest = partial.total, partial.longest
    new.behind, new.rest = partial.behind, partial.rest
    new.f, new.b = partial.f + cost[F], partial.b + cost[B]
    new.once = partial.once + cost[ONCE]
    limits = stage["memory_bytes"]
    had = partial.ranks or ((0, 0, 0),) * len(limits)
    new.ranks = tuple(
        (sum_ + part[STATE] + stage["slots"] * part[SAVED] + part[COMMUNICATION],
         max(most, peak(rank, part)), max(beside, part[BESIDE]))
        for rank, ((sum_, most, beside), part) in enumerate(zip(had, on_ranks(cost, len(limits)))))
    fits = all(sum_ + most + 2 * beside <= limit
               for (sum_, most, beside), limit in zip(new.ranks, limits))
    return new if fits else None


def other(_, part):
    return part[OTHER]


def passing(forward):
    """forward: of the block before, per rank."""
    return lambda rank, part: max(part[OTHER], forward[rank] + part[PASSING])


def close(partial):
    """The stage is complete."""
    new = Partial()
    seconds = partial.f + partial.b
    new.total, new.longest = partial.total + seconds, max(partial.longest, seconds)
    new.rest = max(partial.rest, partial.once - partial.behind)
    new.behind = partial.behind + partial.b
    return new


def reduce(partials):
    kept = []
    for one in sorted(partials, key=Partial.key):
        key = one.key()
        if not any(all(map(le, other_key, key)) for _, other_key in kept):
            kept.append((one, key))
    return [one for one, _ in kept]


class Point:
    def __init__(self, problem, point):
        self.point, self.blocks, self.tied = point, problem["blocks"], problem["tied"]
        self.stages = point["stages"]
        self.last = len(self.blocks) - 1

    def strategies(self, stage, block):
        key = f"{self.stages[stage]['kind']}/{self.blocks[block]['place']}"
        return self.point["strategies"].get(key, [])

    def cost(self, stage, block, index, first, vector):
        """Of a block's strategy; first: the first block's class; vector: of the last block's
        roles, where the two share a weight."""
        if self.tied and block == self.last and self.last > 0:
            return self.point["tied_last"][first][index]
        if self.tied and block == 0 and len(self.stages) > 1:
            return self.point["tied_first"][vector][index]
        return self.strategies(stage, block)[index]["cost"]

    def placed(self, partial, stage, block, index, first, vector):
        cost = self.cost(stage, block, index, first, vector)
        if partial is None or cost is None:
            return None
        return add(partial, self.stages[stage], cost,
                   lambda _, part: max(part[FORWARD], part[OTHER]))

    def open(self, partial, stage, cost):
        of = self.stages[stage]
        begun = add(partial, of, of["base"], other)
        return begun and add(begun, of, cost, other)

    def moves(self, stage, block, before, forward, partial):
        """To all strategies of the next block, on this stage or on the next one; forward: what the
        block's own forward takes on each rank."""
        joint = self.blocks[block]["joint"]
        of = self.stages[stage]
        for index, after in enumerate(self.strategies(stage, block + 1)):
            inner = self.point["joints"].get(f"{of['kind']}/{joint}")
            cost = inner and inner[before["vector"]][after["vector"]]
            if cost:
                yield stage, index, add(partial, of, cost, passing(forward))
        crossing = self.point["crossings"].get(f"{stage}/{joint}")
        if stage + 1 == len(self.stages) or crossing is None:
            return
        for index, after in enumerate(self.strategies(stage + 1, block + 1)):
            out = crossing["out"][before["vector"]][after["vector"]]
            into = crossing["into"][before["vector"]][after["vector"]]
            done = out and into and add(partial, of, out, passing(forward))
            if done:
                yield stage + 1, index, self.open(close(done), stage + 1, into)

    def solve(self, vector):
        """The shortest step in which the last block has these roles; None: any."""
        states = {}
        for index, strategy in enumerate(self.strategies(0, 0)):
            first = strategy["class"] if self.tied else 0
            one = self.placed(self.open(Partial(), 0, NOTHING), 0, 0, index, first, vector)
            if one:
                states.setdefault((0, index, first), []).append(one)
        for block in range(self.last):
            following = {}
            for (stage, index, first), partials in states.items():
                before = self.strategies(stage, block)[index]
                cost = self.cost(stage, block, index, first, vector)
                limits = self.stages[stage]["memory_bytes"]
                forward = [part[FORWARD] for part in on_ranks(cost, len(limits))]
                for partial in reduce(partials):
                    for to, after, moved in self.moves(stage, block, before, forward, partial):
                        one = self.placed(moved, to, block + 1, after, first, vector)
                        if one:
                            following.setdefault((to, after, first), []).append(one)
            states = following
        return min((self.step(one) for (stage, index, _), partials in states.items()
                    for one in partials if stage == len(self.stages) - 1 and
                    vector in (None, self.strategies(stage, self.last)[index]["vector"])),
                   default=math.inf)

    def step(self, partial):
        done = close(partial)
        return done.total + (self.point["micro_batches"] - 1) * done.longest + done.rest

    def best(self):
        if not self.tied or len(self.stages) == 1:
            return self.solve(None)
        vectors = {one["vector"] for one in self.strategies(len(self.stages) - 1, self.last)}
        return min((self.solve(vector) for vector in sorted(vectors)), default=math.inf)


costs = json.load(open(sys.argv[1], encoding="utf-8"))
for each in costs["points"]:
    print(repr(Point(costs, each).best()))
