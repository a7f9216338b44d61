#!/usr/bin/env python3
"""What `gimbal plan explain` says, worked out again from what `gimbal plan --dump-costs` wrote.

usage: explained.py COSTS.json PLAN.json EXPLAINED.json LAYERS HIDDEN SEQ

The plan is one of a gpt model on devices that are alike, without overlap. Of every stage forward,
backward and what is done once add up to the costs of its parts, and so do the bytes; of every block
the longest part is what it is bound by, and the least that it sends is what the papers say. Prints
a line per claim that is wrong."""
import json
import math
import sys

F, B, ONCE, BESIDE, STATE, SAVED, COMMUNICATION, FORWARD, OTHER, PASSING = range(10)


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def check(what, said, found, slack=1e-9):
    if abs(said - found) > slack * max(abs(found), 1e-12):
        print(f"{what}: {said} was said, {found} was found")


def find_point(costs, plan):
    sizes = [len(stage["devices"]) for stage in plan["stages"]]
    for point in costs["points"]:
        if (point["devices"] == sum(sizes) and len(point["stages"]) == len(sizes) and
                point["micro_batches"] == plan["micro_batches"] and
                point["schedule"] == plan["schedule"]):
            return point
    sys.exit("the costs have no point of the plan")


class Costs:
    """Of one plan's parts."""

    def __init__(self, costs, plan):
        self.blocks, self.plan, self.tied = costs["blocks"], plan, costs["tied"]
        self.point = find_point(costs, plan)
        self.stage = [block["stage"] for block in plan["blocks"]]
        self.strategy = [self.find(b) for b in range(len(self.blocks))]

    def kind(self, stage):
        return self.point["stages"][stage]["kind"]

    def find(self, b):
        block = self.plan["blocks"][b]
        key = f"{self.kind(block['stage'])}/{self.blocks[b]['place']}"
        for index, one in enumerate(self.point["strategies"][key]):
            if (one["roles"] == block["roles"] and one["zero"] == block["zero"] and
                    one["recompute"] == block["recompute"]):
                return index, one
        sys.exit(f"the costs have no strategy of block {b}")

    def of_block(self, b):
        index, one = self.strategy[b]
        last = len(self.blocks) - 1
        if self.tied and b == last:
            return self.point["tied_last"][self.strategy[0][1]["class"]][index]
        if self.tied and b == 0 and self.point["tied_first"]:
            return self.point["tied_first"][self.strategy[last][1]["vector"]][index]
        return one["cost"]

    def joint(self, b, stage):
        """Between block b and the next, as the stage sees it."""
        x, y = self.strategy[b][1]["vector"], self.strategy[b + 1][1]["vector"]
        name = self.blocks[b]["joint"]
        if self.stage[b] == self.stage[b + 1]:
            return self.point["joints"][f"{self.kind(stage)}/{name}"][x][y]
        side = "out" if stage == self.stage[b] else "into"
        return self.point["crossings"][f"{self.stage[b]}/{name}"][side][x][y]

    def parts(self, stage):
        yield self.point["stages"][stage]["base"]
        for b, of in enumerate(self.stage):
            if of == stage:
                yield self.of_block(b)
            if b + 1 < len(self.stage) and stage in (of, self.stage[b + 1]):
                yield self.joint(b, stage)


def seconds(part):
    return part["compute_s"] + part["host_s"] + part["network_s"]


def check_stage(costs, explained, stage):
    rows = [row for row in explained["blocks"] + explained["stages"] if row["stage"] == stage]
    parts = list(costs.parts(stage))
    slots = costs.point["stages"][stage]["slots"]
    for name, index in (("forward", F), ("backward", B), ("once", ONCE)):
        check(f"stage {stage}, {name}", sum(seconds(row[name]) for row in rows),
              sum(part[index] for part in parts))
    for name, index, times in (("state_bytes", STATE, 1), ("saved_bytes", SAVED, slots)):
        check(f"stage {stage}, {name}", sum(row[name] for row in rows),
              times * sum(part[index] for part in parts), 0.02)  # buffers lie aligned


def bound(sizes, p):
    """Words that a device receives at least for one product (arXiv 2205.13407, theorem 1)."""
    m, n, k = sorted(sizes, reverse=True)
    if p <= m / n:
        touched = (m * n + m * k) / p + n * k
    elif p <= m * n / k**2:
        touched = m * n / p + 2 * math.sqrt(m * n * k**2 / p)
    else:
        touched = 3 * (m * n * k / p) ** (2 / 3)
    return touched - (m * n + m * k + n * k) / p


def least(name, tokens, hidden, p):
    # The head's weight is the embedding's, which looks it up.
    products = [] if name in ("embed", "head") else [
        (hidden, 3 * hidden), (hidden, hidden), (hidden, 4 * hidden), (4 * hidden, hidden)]
    return 4 * sum(2 * bound((tokens, *product), p) for product in products)


def main():
    costs, plan, explained = (load(path) for path in sys.argv[1:4])
    layers, hidden, seq = (int(word) for word in sys.argv[4:7])
    known = Costs(costs, plan)
    for stage in range(len(plan["stages"])):
        check_stage(known, explained, stage)
    if len(explained["blocks"]) != layers + 2:
        print("not every block is explained")
    for b, row in enumerate(explained["blocks"]):
        parts = {"compute": 0, "host links": 0, "network": 0}
        for name, times in (("forward", plan["micro_batches"]),
                            ("backward", plan["micro_batches"]), ("once", 1)):
            for word, member in zip(parts, ("compute_s", "host_s", "network_s")):
                parts[word] += times * row[name][member]
        if parts[row["bound_by"]] < max(parts.values()):
            print(f"{row['name']} is not bound by {row['bound_by']}: {parts}")
        devices = len(plan["stages"][known.stage[b]]["devices"])
        check(f"{row['name']}, least", row["least_bytes"],
              least(row["name"], plan["global_batch"] * seq, hidden, devices))


if __name__ == "__main__":
    main()
