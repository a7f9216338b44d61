#!/usr/bin/env python3
"""test_room.py - two workers of a real cluster have memory for a plan and its copies of state, and then a byte less.

    test_room.py TREE COORDINATOR WORKER EXECUTOR GIMBAL"""
import contextlib
import json
import subprocess
import sys

tree, coordinator_path, worker_path, executor_path, gimbal_path = sys.argv[1:6]
sys.path.insert(0, tree)
from tests.support import tap  # noqa: E402
from tests.support.coordinator import Coordinator, await_event  # noqa: E402

# There is one plan for it, which shards the optimizer's state: each node alone has half of that.
DIVISION = ("devices: {min: 2, max: 2}\n"
            "plan: {pin: {dp: 2, pp: 1, tp: 1, micro_batches: 1}, forbid: {zero: [0, 2, 3], recompute: [selective, full]}}\n"
            "elastic: {copy_share: 0}\n")
KEEPS = "for copies of state"


def train(memory):
    """What is told of the plan that two workers with so much memory get, in words and figures, and what the ranks log."""
    with Coordinator(coordinator_path) as one, contextlib.ExitStack() as stack:
        for name in ("node-a", "node-b"):
            stack.enter_context(one.worker(worker_path, executor_path, name, memory))
        events = stack.enter_context(one.submit(gimbal_path, DIVISION))
        chosen = json.loads(await_event(events, '"event":"plan-chosen"'))
        await_event(events, '"event":"step"')
        logs = subprocess.run([gimbal_path, "logs", "j-1"], env=one.environment, check=True, capture_output=True, text=True)
        return chosen["text"], chosen["more"], logs.stdout


def copies_are_made_as_long_as_they_have_room():
    _, plenty, _ = train("256MiB")
    assert plenty["safety"] == "copies" and plenty["copy_bytes"] > 0, plenty
    enough = plenty["content"]["predicted"]["memory_bytes_max"] + plenty["copy_bytes"]
    _, chosen, logs = train(str(enough))
    assert chosen["safety"] == "copies" and chosen["copy_every"] == 1, chosen
    assert KEEPS in logs, logs
    words, chosen, logs = train(str(enough - 1))
    assert chosen["safety"] == "checkpoint" and chosen["copy_every"] == 0, chosen
    assert "no room for copies of state" in words, words
    assert KEEPS not in logs, logs


sys.exit(tap.run([copies_are_made_as_long_as_they_have_room]))
