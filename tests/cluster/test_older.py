#!/usr/bin/env python3
"""test_older.py - a store and checkpoints that an older release wrote, tests/data, still open, go on and are exported.

    test_older.py TREE COORDINATOR WORKER EXECUTOR GIMBAL"""
import contextlib
import json
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import time

tree, coordinator_path, worker_path, executor_path, gimbal_path = sys.argv[1:6]
sys.path.insert(0, tree)
from tests.support import tap  # noqa: E402
from tests.support.coordinator import PATIENCE_S, Coordinator  # noqa: E402

WRITTEN_AT = "/tmp/gimbal-older"  # where it was; what names this has to name where it is now


def of_release(release):
    """The files of a release into a coordinator's folder, which then is their place."""
    def prepare(folder):
        data = pathlib.Path(tree) / "tests" / "data" / release
        shutil.copytree(data / "checkpoints", folder / "checkpoints")
        shutil.copy(data / "text", folder / "text")
        (folder / "ended.yaml").write_text((data / "ended.yaml").read_text().replace(WRITTEN_AT, str(folder)))
        (folder / "state").mkdir()
        shutil.copy(data / "store.db", folder / "state" / "store.db")
        with contextlib.closing(sqlite3.connect(folder / "state" / "store.db")) as base:
            for table, column in (("jobs", "text"), ("checkpoints", "folder"), ("data_files", "path")):
                base.execute(f"UPDATE {table} SET {column} = replace({column}, ?, ?)", (WRITTEN_AT, str(folder)))
            base.commit()
    return prepare


def gimbal(one, *arguments, code=0):
    done = subprocess.run([gimbal_path, *arguments], capture_output=True, text=True, timeout=PATIENCE_S,
                          env=one.environment)
    assert done.returncode == code, done
    return done.stdout if code == 0 else done.stderr


def job(one, name):
    return json.loads(gimbal(one, "jobs", name, "-o", "json"))["jobs"][0]


def await_job(one, name, holds):
    for _ in range(10 * PATIENCE_S):
        found = job(one, name)
        if holds(found):
            return found
        time.sleep(0.1)
    raise AssertionError(found)


def opens_and_goes_on(release):
    def case():
        with Coordinator(coordinator_path, prepare=of_release(release)) as one:
            ended = job(one, "j-1")
            assert (ended["state"], ended["step"], round(ended["loss"], 5)) == ("DONE", 100, 3.17569), ended
            assert "job-done" in gimbal(one, "events", "j-1", "-o", "jsonl")
            assert gimbal(one, "times", "j-1") == "" and gimbal(one, "curve", "j-1") == ""
            assert job(one, "j-2")["state"] == "PENDING" and job(one, "j-2")["checkpoint_step"] == 751
            assert "step-100.epoch-1" in gimbal(one, "checkpoint", "list", "j-1", "-o", "wide")
            gimbal(one, "checkpoint", "verify", "j-1")
            gimbal(one, "checkpoint", "export", "j-1", one.folder / "model")
            assert (one.folder / "model" / "model.safetensors").exists()
            assert len(gimbal(one, "generate", "j-1", "--prompt", "the", "--bytes", "10")) >= 10
            with one.worker(worker_path, executor_path, name="a"):
                # It ran when all was killed: it goes on from its checkpoint.
                await_job(one, "j-3", lambda found: found["epoch"] > 1 and found["state"] == "RUNNING"
                          and found["step"] > 2500)
                gimbal(one, "cancel", "j-3", "--save")
                await_job(one, "j-3", lambda found: found["state"] == "CANCELLED" and found["checkpoint_step"] > 2500)
                gimbal(one, "resume", "j-2")
                await_job(one, "j-2", lambda found: found["state"] == "RUNNING" and found["step"] > 751)
                first = gimbal(one, "curve", "j-2", "-o", "csv").splitlines()[1]
                assert first.startswith("752,"), first
                gimbal(one, "cancel", "j-2")
                # An ended one goes on, too, in the cluster and without it.
                longer = one.folder / "longer.yaml"
                longer.write_text((one.folder / "ended.yaml").read_text().replace("steps: 100", "steps: 102"))
                gimbal(one, "submit", "--from", "j-1", "-f", str(longer), "--wait")
                heir = job(one, "j-4")
                assert (heir["step"], heir["origin_step"]) == (102, 100), heir
            alone = subprocess.run([gimbal_path, "train", "--local", "1", "--from", heir["origin"], "-f", longer,
                                    "--checkpoint", one.folder / "alone", "-o", "json"], capture_output=True, text=True,
                                   timeout=PATIENCE_S, env=dict(one.environment, GIMBAL_EXECUTOR=executor_path))
            assert json.loads(alone.stdout)["steps"] == 102, alone
            assert "an older release wrote it, without its job file" in alone.stderr, alone
            assert job(one, "j-1") == ended
    return f"what_{release}_wrote_opens_and_goes_on", case


sys.exit(tap.run([opens_and_goes_on(folder.name) for folder in sorted((pathlib.Path(tree) / "tests" / "data").glob("*/"))
                  if (folder / "store.db").exists()]))
