#!/usr/bin/env python3
"""test_history.py - what a job has measured is the same after its coordinator was killed, everywhere where it is
told; and what is said of jobs that were removed.

    test_history.py TREE COORDINATOR WORKER EXECUTOR GIMBAL"""
import csv
import io
import json
import subprocess
import sys
import time

tree, coordinator_path, worker_path, executor_path, gimbal_path = sys.argv[1:6]
sys.path.insert(0, tree)
from tests.support import tap  # noqa: E402
from tests.support.coordinator import PATIENCE_S, Coordinator, free_port  # noqa: E402

JOB = """apiVersion: gimbal/v1
name: {name}
model: {{family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16}}
data: {{text: ['{folder}/text']}}
train: {{steps: {steps}, global_batch: 4, lr: 0.001}}
eval: {{every: 25, holdout: 0.1, sample: 20}}
devices: {{max: 1}}
"""


def started(*arguments):
    return Coordinator(coordinator_path, "--http", f"127.0.0.1:{free_port(1)}", *arguments)


def gimbal(one, *arguments, code=0, **more):
    done = subprocess.run([gimbal_path, *arguments], capture_output=True, text=True, timeout=PATIENCE_S,
                          env=one.environment, **more)
    assert done.returncode == code, done
    return done.stdout if code == 0 else done.stderr


def submit(one, name, steps, *flags, waits=False):
    (one.folder / "text").write_text("the quick brown fox jumps over the lazy dog\n" * 40)
    done = subprocess.run([gimbal_path, "submit", "-f", "-", *flags], capture_output=True, text=True, timeout=PATIENCE_S,
                          env=one.environment, input=JOB.format(name=name, folder=one.folder, steps=steps))
    assert done.returncode == (2 if waits else 0), done
    return done.stdout.split()[0]


def await_workers(one):
    for _ in range(PATIENCE_S * 10):
        if gimbal(one, "nodes", "-o", "name"):
            return
        time.sleep(0.1)
    raise AssertionError("no worker joins")


def curve(one, job):
    return list(csv.DictReader(io.StringIO(gimbal(one, "curve", job, "-o", "csv"))))


def told(one, job):
    """What is said of a job that has ended, in all places."""
    page = json.loads(one.ask(f"/api/v1/jobs/{job}")[2])
    return {"jobs": json.loads(gimbal(one, "jobs", "-a", "-o", "json"))["jobs"],
            "times": json.loads(gimbal(one, "times", job, "-o", "json")), "page": page,
            "curve": gimbal(one, "curve", job, "-o", "csv"), "table": gimbal(one, "curve", job, "-o", "wide"),
            "events": gimbal(one, "events", job, "-o", "jsonl")}


def a_job_that_ended_is_the_same_after_its_coordinator_was_killed():
    with started() as one, one.worker(worker_path, executor_path):
        job = submit(one, "short", 120, "--wait")
        before = told(one, job)
        steps = [int(row["step"]) for row in curve(one, job)]
        assert steps == list(range(1, 121)), steps
        page = before["page"]
        assert [point["step"] for point in page["curve"]] == steps
        assert [item["step"] for item in page["evaluations"]] == [25, 50, 75, 100, 120]
        assert before["times"]["times"] and before["jobs"][0]["loss"] == page["curve"][-1]["loss"]
        assert all(row["loss"] and row["gradient_norm"] and row["tokens_per_s"] for row in curve(one, job))
        one.die_and_start_again()
        after = told(one, job)
        for place, content in before.items():
            assert after[place] == content, (place, content, after[place])


def a_job_that_runs_has_no_hole_where_its_coordinator_was_killed():
    with started() as one, one.worker(worker_path, executor_path):
        await_workers(one)
        job = submit(one, "long", 1000000000)
        for life in range(3):
            for _ in range(PATIENCE_S * 10):
                if len(curve(one, job)) >= 200 * (life + 1):
                    break
                time.sleep(0.1)
            one.die_and_start_again()
        steps = [int(row["step"]) for row in curve(one, job) if row["loss"]]
        stride = steps[1] - steps[0]
        holes = [(a, b) for a, b in zip(steps[:-64], steps[1:-64]) if b - a != stride]
        assert len(steps) >= 600 and steps[0] == stride and not holes, (len(steps), stride, holes)
        assert steps[-64:] == list(range(steps[-1] - 63, steps[-1] + 1)), steps[-64:]
        gimbal(one, "cancel", job)


def curves_are_printed_side_by_side():
    with started() as one, one.worker(worker_path, executor_path):
        jobs = [submit(one, f"job-{steps}", steps, "--wait") for steps in (60, 30)]
        lines = gimbal(one, "curve", "--compare", *jobs, "-n", "0").splitlines()
        assert lines[0].split() == ["STEP", "j-1", "j-1", "HELD-OUT", "j-2", "j-2", "HELD-OUT"], lines[0]
        assert len(lines) == 61 and lines[31].split()[0] == "31" and lines[31].split()[3:] == ["-", "-"], lines
        assert len(gimbal(one, "curve", jobs[0], "-n", "7").splitlines()) == 8
        assert len(gimbal(one, "curve", jobs[0]).splitlines()) == 41
        rows = list(csv.DictReader(io.StringIO(gimbal(one, "curve", "--compare", *jobs, "-o", "csv"))))
        assert rows[0]["j-1.loss"] == rows[0]["j-2.loss"] and rows[59]["j-2.loss"] == ""
        points = [json.loads(line) for line in gimbal(one, "curve", jobs[1], "-o", "jsonl").splitlines()]
        assert len(points) == 30 and points[24]["held_out_loss"] > 0 and points[23]["held_out_loss"] is None
        assert points[0]["kind"] == "CurvePoint"
        file = one.folder / "curve.csv"
        gimbal(one, "curve", jobs[0], "-o", file)
        assert file.read_text().startswith("step,epoch,loss,held_out_loss,gradient_norm,tokens_per_s,")
        assert "add --compare" in gimbal(one, "curve", *jobs, code=64)
        assert "no job 'j-9'" in gimbal(one, "curve", "j-9", code=65)


def a_job_that_was_removed_is_still_answered():
    with started("--retention-jobs", "2") as one:
        jobs = [submit(one, "waits", 5, waits=True) for _ in range(4)]
        for job in (jobs[0], jobs[2], jobs[1], jobs[3]):
            gimbal(one, "cancel", job)
        assert gimbal(one, "jobs", "-a", "-o", "name").split() == ["j-2", "j-4"]
        for life in range(2):
            for job in ("j-1", "j-3"):
                words = f"{job} ended "
                for command in (["jobs", job], ["events", job], ["logs", job], ["curve", job], ["times", job],
                                ["cancel", job], ["resume", job], ["checkpoint", "list", job]):
                    text = gimbal(one, *command, code=65)
                    assert words in text and "ago and was removed; it was CANCELLED" in text, text
                status, _, body = one.ask(f"/api/v1/jobs/{job}")
                assert status == 404 and words in body, body
                assert words in one.ask(f"/api/v1/jobs/{job}/timeline")[2]
            assert "there is no job 'j-77'" in gimbal(one, "jobs", "j-77", code=65)
            assert "there is no job 'j-1x'" in gimbal(one, "events", "j-1x", code=65)
            one.die_and_start_again()
        assert submit(one, "next", 5, waits=True) == "j-5"


sys.exit(tap.run([a_job_that_ended_is_the_same_after_its_coordinator_was_killed,
                  a_job_that_runs_has_no_hole_where_its_coordinator_was_killed,
                  curves_are_printed_side_by_side,
                  a_job_that_was_removed_is_still_answered]))
