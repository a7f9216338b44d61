#!/usr/bin/env python3
"""test_going_on.py - a job that has ended goes on as another, also behind a coordinator that was killed: with the
same job file and plan as if it had not been interrupted, and with others as its user says.

    test_going_on.py TREE COORDINATOR WORKER EXECUTOR GIMBAL"""
import contextlib
import json
import math
import os
import subprocess
import sys

tree, coordinator_path, worker_path, executor_path, gimbal_path = sys.argv[1:6]
sys.path.insert(0, tree)
from tests.support import daemons, tap  # noqa: E402
from tests.support.coordinator import Coordinator  # noqa: E402

STEPS, EVERY = 12, 6
WAIT_S = 300  # beside much else
JOB = """apiVersion: gimbal/v1
name: fox
model: {{family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16}}
data: {{text: ['{folder}/text']}}
train: {{steps: {steps}, global_batch: 4, lr: {lr}}}
devices: {{min: 2, max: 2}}
plan: {{pin: {pin}}}
checkpoint: {{every: {every}}}
"""


def gimbal(*arguments, code=0, **more):
    done = subprocess.run([gimbal_path, *map(str, arguments)], capture_output=True, text=True, timeout=WAIT_S, **more)
    assert done.returncode == code, done
    return done


@contextlib.contextmanager
def two_nodes(*flags):
    """A coordinator with these flags, its two workers, and how its user asks."""
    with Coordinator(coordinator_path, *flags) as one, contextlib.ExitStack() as stack:
        (one.folder / "text").write_text("the quick brown fox jumps over the lazy dog\n" * 40)
        for name in ("node-a", "node-b"):
            stack.enter_context(one.worker(worker_path, executor_path, name))
        yield one, dict(env=dict(one.environment, GIMBAL_EXECUTOR=executor_path))


def write_job(one, **changed):
    file = one.folder / "job.yaml"
    file.write_text(JOB.format(**{"folder": one.folder, "steps": STEPS, "lr": 0.003, "pin": "{dp: 2}", "every": EVERY,
                                  **changed}))
    return file


def submit(*arguments, code=0, **mine):
    """What was said, and the job's record when it has ended."""
    done = gimbal("submit", *arguments, "--wait", code=code, **mine)
    jobs = json.loads(gimbal("jobs", "-a", "-o", "json", **mine).stdout)["jobs"]
    return done.stderr, next(job for job in jobs if job["job"] == done.stdout.strip())


def kill_and_start_again(one):
    one.process.kill()
    one.process.wait()
    one.log.close()
    os.unlink(one.folder / "notify")
    one.process, one.log = daemons.start(
        [coordinator_path, "--address", one.address, "--state", one.folder / "state"], one.folder)


def an_ended_job_goes_on_behind_a_coordinator_that_was_killed():
    with two_nodes() as (one, mine):
        _, first = submit("-f", write_job(one), **mine)
        plan = one.folder / "plan.json"
        plan.write_text(gimbal("plan", "show", first["job"], "-o", "json", **mine).stdout)
        kill_and_start_again(one)

        said, same = submit("--from", f"{first['job']}@{EVERY}", "--plan", plan, **mine)
        assert f"the job goes on after step {EVERY} of '" in said and "not as in the checkpoint" not in said, said
        assert same["loss"] == first["loss"] and same["step"] == STEPS, (same, first)
        assert same["origin_step"] == EVERY and same["origin"].endswith(f"/step-{EVERY}.epoch-1"), same

        slow = write_job(one, lr=0.001)
        said, slower = submit("--from", f"{first['job']}@{EVERY}", "-f", slow, "--plan", plan, **mine)
        assert "not as in the checkpoint: train.lr is 0.001 and was 0.003\n" in said, said
        alone = json.loads(gimbal("train", "--local", "2", "--from", same["origin"], "-f", slow, "--plan", plan,
                                  "--checkpoint", one.folder / "alone", "-o", "json", **mine).stdout)
        assert slower["loss"] == alone["loss"] != first["loss"], (slower, alone, first)

        said, staged = submit("--from", f"{first['job']}@{EVERY}", "-f", write_job(one, lr=0.001, pin="{pp: 2}"), **mine)
        assert "train.lr is 0.001" in said and "plan.pin.pp is 2 and was not given" in said, said
        assert math.isclose(staged["loss"], slower["loss"], abs_tol=1e-4), (staged, slower)
        events = gimbal("events", staged["job"], **mine).stdout
        assert f"goes on after step {EVERY} of '" in events and "train.lr is 0.001 and was 0.003" in events, events


def a_job_that_went_on_goes_on():
    """Its place in the data counts from where the first one was, and each may have batches of its own."""
    with two_nodes() as (one, mine):
        _, first = submit("-f", write_job(one), **mine)
        _, second = submit("--from", f"{first['job']}@{EVERY}", "-f",
                           write_job(one, steps=9, every=3), **mine)
        file = one.folder / "job.yaml"
        file.write_text(file.read_text().replace("global_batch: 4", "global_batch: 8").replace("steps: 9", "steps: 11"))
        _, third = submit("--from", second["job"], "-f", file, **mine)
        assert third["step"] == 11 and third["origin_step"] == 9, third
        manifest = json.loads(open(f"{third['checkpoint']}/manifest.json", encoding="utf-8").read())
        assert manifest["data"]["samples"] == 9 * 4 + 2 * 8, manifest["data"]
        said, fourth = submit("--from", second["checkpoint"], "-f", file, "--weights-only", **mine)
        assert "the job begins with the weights in '" in said and fourth["step"] == 11, (said, fourth)
        assert fourth["origin"] == second["checkpoint"], fourth


def what_cannot_be_gone_on_from_is_refused():
    with two_nodes() as (one, mine):
        _, first = submit("-f", write_job(one), **mine)
        for words, arguments in (
                ("nothing is left to train", ("--from", "j-1")),
                ("j-1 has no checkpoint of step 7", ("--from", "j-1@7")),
                ("there is no job 'j-9'", ("--from", "j-9")),
                ("has no manifest.json", ("--from", one.folder)),
                ("another model: model.heads is 2 and was 4",
                 ("--from", "j-1@6", "-f", one.folder / "heads.yaml"))):
            job = write_job(one)
            (one.folder / "heads.yaml").write_text(job.read_text().replace("heads: 4", "heads: 2"))
            assert words in gimbal("submit", *arguments, code=65, **mine).stderr, words
        assert len(json.loads(gimbal("jobs", "-a", "-o", "json", **mine).stdout)["jobs"]) == 1
        said = gimbal("resume", first["job"], code=73, **mine).stderr
        assert f"'gimbal submit --from {first['job']}' goes on from there" in said, said


def nobody_loses_a_model_for_not_having_named_a_folder():
    """It lies where the cluster saves, by the job's name and id; every node reads what the others write there."""
    with two_nodes() as (one, mine):
        file = one.folder / "job.yaml"
        file.write_text("".join(line for line in write_job(one, steps=2).read_text().splitlines(True)
                                if not line.startswith("checkpoint")))
        said, job = submit("-f", file, **mine)
        assert "is lost" not in said and job["checkpoint_step"] == 2, (said, job)
        assert job["checkpoint"].startswith(f"{one.folder}/state/checkpoints/fox/j-1-"), job
        assert gimbal("generate", "j-1", "-n", "0", "-p", "fox", **mine).stdout == "fox\n", job
        flags = ("--", "--coordinator", one.address, "--name", "node-a", "--state", one.folder / "node-a")
        while "written there is" not in (said := doctor(mine, *flags)):  # a mark may still be on its way
            assert "has written there" not in said or "is not here" in said, said
        assert "2 nodes have written there is here" in said, said
        (one.folder / "state/checkpoints/.nodes/node-b").write_text("that of another worker\n")
        said = doctor(mine, *flags, code=5)
        assert "what 1 of 2 nodes have written there is not here, such as what 'node-b' has" in said, said


def doctor(mine, *flags, code=None):
    done = subprocess.run([gimbal_path, "doctor", *map(str, flags)], capture_output=True, text=True, timeout=WAIT_S, **mine)
    assert code is None or done.returncode == code, done
    return done.stdout


def who_will_lose_a_model_is_told_before():
    with two_nodes("--checkpoints", "none") as (one, mine):
        file = write_job(one, steps=2)
        said, job = submit("-f", file, **mine)
        assert said.startswith("nothing of j-1 is saved, and its model is lost when it ends: "), said
        assert job["checkpoint_step"] == 0 and job["checkpoint_folder"] == "", job
        said = gimbal("generate", "j-1", code=65, **mine).stderr
        assert "neither its job file (checkpoint.dir) nor the coordinator's settings (checkpoints)" in said, said
        said = doctor(mine, "--", "--coordinator", one.address, "--name", "node-a", "--state", one.folder / "node-a")
        assert "their models are lost when they end" in said, said


sys.exit(tap.run([an_ended_job_goes_on_behind_a_coordinator_that_was_killed, a_job_that_went_on_goes_on,
                  what_cannot_be_gone_on_from_is_refused, nobody_loses_a_model_for_not_having_named_a_folder,
                  who_will_lose_a_model_is_told_before]))
