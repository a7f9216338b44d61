#!/usr/bin/env python3
"""test_backup.py - a backup of a coordinator that works: a new coordinator on it finds the executors where
they are and loses no step, uses no number twice, and ends what it does not know.

    test_backup.py TREE COORDINATOR WORKER EXECUTOR GIMBAL"""
import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

tree, coordinator_path, worker_path, executor_path, gimbal_path = sys.argv[1:6]
sys.path.insert(0, tree)
from tests.support import daemons, tap  # noqa: E402
from tests.support.coordinator import PATIENCE_S, Coordinator, await_event, joined, running, secured  # noqa: E402

JOB = """apiVersion: gimbal/v1
name: {name}
model: {{family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16}}
data: {{text: ['{folder}/text']}}
train: {{steps: 1000000000, global_batch: 4, lr: 0.001}}
devices: {{min: {devices}, max: {devices}}}
{more}"""


def gimbal(*arguments, code=0, **more):
    done = subprocess.run([gimbal_path, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, **more)
    assert done.returncode == code, done
    return done.stdout if code == 0 else done.stderr


def submit(one, name, devices, more=""):
    (one.folder / "text").write_text("the quick brown fox jumps over the lazy dog\n" * 40)
    job = JOB.format(name=name, folder=one.folder, devices=devices, more=more)
    return gimbal("submit", "-f", "-", input=job, env=one.environment).strip()


def watching(one):
    return running(gimbal_path, "events", "-w", "-v", "-o", "jsonl", env=one.environment, stdout=subprocess.PIPE,
                   text=True)


def start_again(one):
    """The coordinator at its address, on what its folder holds."""
    one.log.close()
    os.unlink(one.folder / "notify")
    one.process, one.log = daemons.start(
        [coordinator_path, "--address", one.address, "--state", one.folder / "state"], one.folder)


def restore(one, file, state=None, code=0):
    return gimbal("cluster", "restore", file, "--", "--state", state or one.folder / "state", code=code,
                  env=dict(one.environment, GIMBAL_COORDINATOR_PROGRAM=coordinator_path))


def what_was_backed_up_goes_on_without_a_lost_step_and_the_rest_ends():
    with Coordinator(coordinator_path) as one, contextlib.ExitStack() as stack:
        seen = stack.enter_context(watching(one))
        for name in ("node-a", "node-b", "node-c"):
            stack.enter_context(one.worker(worker_path, executor_path, name))
            await_event(seen, f"node {name} joined")
        kept = submit(one, "kept", 2, "plan: {pin: {pp: 2}}\n")
        await_event(seen, '"event":"step"')
        backup = one.folder / "backup"
        gimbal("cluster", "backup", backup, env=one.environment)
        assert backup.stat().st_mode & 0o777 == 0o600 and not (one.folder / "backup.part").exists()
        # What happens from here on is not in it: another epoch, another term, another job.
        gimbal("replan", kept, env=one.environment)
        await_event(seen, "job-replanned")
        later = submit(one, "later", 1)
        await_event(seen, f'"{later}"')
        await_event(seen, "job-running")
        assert "another process has it open" in restore(one, backup, code=74)
        seen.terminate()
        one.process.kill()
        one.process.wait()
        said = restore(one, backup)
        assert "1 job that had not ended" in said and "the store that was there is now" in said, said
        start_again(one)
        again = stack.enter_context(watching(one))
        for line in again.stdout:
            if "job-replanned" in line:
                break
        told = json.loads(line)
        assert "restored from a backup" in told["text"] and "0 steps lost" in told["text"], told
        await_event(again, '"event":"step"')
        assert later not in gimbal("jobs", "-a", env=one.environment)
        # Its executor is ended though nobody wants the device.
        log = one.folder / "log"
        for _ in range(PATIENCE_S):  # a step is told once a second
            if f"job {later} epoch 1 rank 0 ended" in log.read_text():
                break
            await_event(again, '"event":"step"')
        assert "the coordinator does not know this job" in log.read_text()
        # No number comes again.
        assert int(submit(one, "newest", 1).split("-")[1]) > int(later.split("-")[1])
        for job in gimbal("jobs", "-o", "name", env=one.environment).split():
            gimbal("cancel", job, env=one.environment)


def what_is_no_backup_is_refused_and_nothing_is_left():
    with Coordinator(coordinator_path) as one:
        backup, state = one.folder / "backup", one.folder / "new" / "state"
        gimbal("cluster", "backup", backup, env=one.environment)
        whole = backup.read_bytes()
        cases = {"no file of SQLite": b"name: job\n" * 100, "is not a file of SQLite": b"",
                 "cannot be used": whole[:20000]}
        for words, content in cases.items():
            (one.folder / "other").write_bytes(content)
            text = restore(one, one.folder / "other", state, code=74 if words == "cannot be used" else 65)
            assert words.replace("no file", "not a file") in text, text
        changes = {"is a store, but no backup": "UPDATE cluster SET copied_ms = 0",
                   "set this machine's clock": "UPDATE cluster SET copied_ms = copied_ms + 86400000"}
        for words, change in changes.items():
            shutil.copy(backup, one.folder / "other")
            with contextlib.closing(sqlite3.connect(one.folder / "other")) as base:
                base.execute(change)
                base.commit()
                base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            assert words in restore(one, one.folder / "other", state, code=65)
        assert "No such file" in restore(one, one.folder / "missing", state, code=65)
        assert not state.exists()
        restore(one, backup, state)
        assert [file.name for file in state.iterdir()] == ["store.db"]
        stranger = one.folder / "stranger"
        with Coordinator(coordinator_path) as two:
            gimbal("cluster", "backup", stranger, env=two.environment)
        assert "the store of another cluster" in restore(one, stranger, state, code=74)


def only_administrators_may_have_it_and_tokens_do_not_come_back():
    with secured(coordinator_path, gimbal_path) as (one, _):
        admin, user = joined(one, gimbal)
        assert "not open to" in gimbal("cluster", "backup", one.folder / "backup", env=user, code=77)
        assert not (one.folder / "backup").exists() and not (one.folder / "backup.part").exists()
        gimbal("cluster", "backup", one.folder / "backup", env=admin)
        state = one.folder / "restored"
        restore(one, one.folder / "backup", state)
        with contextlib.closing(sqlite3.connect(state / "store.db")) as base:
            assert base.execute("SELECT COUNT(*) FROM tokens").fetchone() == (0,)
            assert base.execute("SELECT name FROM credentials").fetchall() == [("ada",)]


sys.exit(tap.run([what_was_backed_up_goes_on_without_a_lost_step_and_the_rest_ends,
                  what_is_no_backup_is_refused_and_nothing_is_left,
                  only_administrators_may_have_it_and_tokens_do_not_come_back]))
