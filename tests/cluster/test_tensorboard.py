#!/usr/bin/env python3
"""test_tensorboard.py - what TensorBoard's own reader makes of the event files of a job.

    test_tensorboard.py TREE COORDINATOR WORKER EXECUTOR GIMBAL [PYTHON-FOLDER]

PYTHON-FOLDER is what './dev python' makes: a virtual environment with the package."""
import csv
import io
import json
import pathlib
import site
import subprocess
import sys
import tempfile
import time

tree, coordinator_path, worker_path, executor_path, gimbal_path = sys.argv[1:6]
sys.path.insert(0, tree)
from tests.support import tap  # noqa: E402
from tests.support.coordinator import PATIENCE_S, Coordinator  # noqa: E402

for folder in pathlib.Path(sys.argv[6] if len(sys.argv) > 6 else "/proc/nonexistent").glob("lib/python*/site-packages"):
    site.addsitedir(str(folder))
try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError as error:
    tap.skip("tensorboard", f"{error}; './dev python' brings it")

JOB = """apiVersion: gimbal/v1
name: riddles
model: {{family: gpt, layers: 1, hidden: 16, heads: 2, seq: 16}}
data: {{text: ['{folder}/text']}}
train: {{steps: {steps}, global_batch: 4, lr: 0.001, warmup: 10}}
eval: {{every: 20, holdout: 0.1, sample: 20}}
devices: {{max: 1}}
log: {{tensorboard: '{folder}/board', jsonl: '{folder}/lines'}}
"""


def write_job(folder, steps):
    (folder / "text").write_text("the quick brown fox jumps over the lazy dog\n" * 40)
    (folder / "job.yaml").write_text(JOB.format(folder=folder, steps=steps))
    return str(folder / "job.yaml")


def gimbal(*arguments, **more):
    done = subprocess.run([gimbal_path, *arguments], capture_output=True, text=True, timeout=4 * PATIENCE_S, **more)
    assert done.returncode == 0, done
    return done.stdout


def read(folder, run):
    board = EventAccumulator(str(folder / "board" / run), size_guidance={"scalars": 0, "tensors": 0})
    board.Reload()
    return board


def scalars(board, tag):
    return [(event.step, event.value) for event in board.Scalars(tag)]


def lines(folder, key):
    found = [json.loads(line) for line in (folder / "lines").read_text().splitlines()]
    return [(line["step"], line[key]) for line in found if key in line]


def close(a, b):
    return [step for step, _ in a] == [step for step, _ in b] and all(
        abs(x - y) <= 1e-6 * max(1, abs(y)) for (_, x), (_, y) in zip(a, b))


def differences(a, b):
    return sorted(set(a) ^ set(b))[:20]


def a_training_without_a_cluster_is_read_and_one_that_begins_again_replaces_it():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for steps in (60, 40):
            gimbal("train", "--local", "1", "-q", "-f", write_job(folder, steps))
            board = read(folder, "riddles-local")
            assert sorted(board.Tags()["scalars"]) == [
                "gradient_norm", "held_out_loss", "loss", "lr", "step_time_s/measured", "step_time_s/predicted",
                "tokens_per_s"], board.Tags()
            for tag in ("loss", "lr", "gradient_norm", "tokens_per_s", "held_out_loss", "step_time_s/predicted"):
                assert close(scalars(board, tag), lines(folder, tag)), (tag, scalars(board, tag), lines(folder, tag))
            assert [step for step, _ in scalars(board, "loss")] == list(range(1, steps + 1))
            assert [step for step, _ in scalars(board, "held_out_loss")] == list(range(20, steps + 1, 20))
            assert abs(scalars(board, "lr")[4][1] - 0.0005) < 1e-9
            text = board.Tensors("plan")[-1].tensor_proto.string_val[0].decode()
            assert text.startswith("begins behind step 0, from its first weights: p-"), text
            assert board.Tensors("sample")[-1].step == steps  # texts of before stay: they mislead nobody


def a_job_that_moves_in_a_cluster_shows_the_coordinators_curve():
    with Coordinator(coordinator_path) as one, one.worker(worker_path, executor_path):
        while not gimbal("nodes", "-o", "name", env=one.environment):
            time.sleep(0.1)
        job = gimbal("submit", "-f", write_job(one.folder, 4000), env=one.environment).split()[0]
        for _ in range(10 * PATIENCE_S):
            if json.loads(gimbal("jobs", job, "-o", "json", env=one.environment))["jobs"][0]["step"] > 50:
                break
            time.sleep(0.1)
        gimbal("replan", job, env=one.environment)
        for _ in range(10 * PATIENCE_S):
            if json.loads(gimbal("jobs", job, "-o", "json", env=one.environment))["jobs"][0]["state"] == "DONE":
                break
            time.sleep(0.1)
        board = read(one.folder, f"riddles-{job}")
        rows = csv.DictReader(io.StringIO(gimbal("curve", job, "-o", "csv", env=one.environment)))
        curve = [(int(row["step"]), float(row["loss"])) for row in rows if row["loss"]]
        assert [step for step, _ in curve] == list(range(1, 4001)), [step for step, _ in curve]
        assert close(scalars(board, "loss"), curve), differences(scalars(board, "loss"), curve)
        assert close(lines(one.folder, "loss"), curve), differences(lines(one.folder, "loss"), curve)
        texts = [event.tensor_proto.string_val[0].decode() for event in board.Tensors("plan")]
        assert len(texts) == 2 and texts[1].startswith("goes on behind step "), texts
        assert "from memory" in texts[1], texts


sys.exit(tap.run([a_training_without_a_cluster_is_read_and_one_that_begins_again_replaces_it,
                  a_job_that_moves_in_a_cluster_shows_the_coordinators_curve]))
