#!/usr/bin/env python3
"""test_full_disk.py - the disk under a coordinator's state fills up while a job runs, and has room again.

    test_full_disk.py TREE COORDINATOR WORKER EXECUTOR GIMBAL"""
import errno
import pathlib
import subprocess
import sys
import tempfile
import time

tree, coordinator_path, worker_path, executor_path, gimbal_path = sys.argv[1:6]
sys.path.insert(0, tree)
from tests.support import tap  # noqa: E402
from tests.support.coordinator import PATIENCE_S, Coordinator, await_event, small_job  # noqa: E402

ACCEPTED = (0, 2)
AGAIN = 75


def fill(path):
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(65536))
        except OSError as error:
            assert error.errno == errno.ENOSPC, error


def what_cannot_be_kept_is_refused_and_what_runs_goes_on():
    disk = pathlib.Path(folder)
    with Coordinator(coordinator_path, "--state", disk / "state") as one:
        def gimbal(*arguments):
            return subprocess.run([gimbal_path, *arguments], env=one.environment, capture_output=True, text=True)

        with one.worker(worker_path, executor_path), one.submit(gimbal_path) as events:
            await_event(events, '"event":"step"')
            job = one.folder / "small.yaml"
            job.write_text(small_job(one.folder))
            fill(disk / "filler")
            accepted, done = 0, gimbal("submit", "-f", job)
            while done.returncode in ACCEPTED:
                accepted += 1
                done = gimbal("submit", "-f", job)
            assert done.returncode == AGAIN and not done.stdout, done
            assert f"no space is left on the disk of {disk}/state/store.db: make room there" in done.stderr, done
            jobs = gimbal("jobs", "--no-headers").stdout.splitlines()
            assert len(jobs) == 1 + accepted and "RUNNING" in jobs[0], jobs
            done = gimbal("cancel", "j-2")
            assert done.returncode == 0, done
            (disk / "filler").unlink()
            end_s = time.monotonic() + PATIENCE_S
            while (done := gimbal("submit", "-f", job)).returncode == AGAIN:
                assert time.monotonic() < end_s, done
            assert done.returncode in ACCEPTED and done.stdout == f"j-{accepted + 2}\n", done
            assert one.process.poll() is None


with tempfile.TemporaryDirectory() as folder:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "none", folder], capture_output=True, text=True)
    if mounted.returncode != 0:
        tap.skip("full disk", f"no file system of its own: {mounted.stderr.strip()}")
    try:
        status = tap.run([what_cannot_be_kept_is_refused_and_what_runs_goes_on])
    finally:
        subprocess.run(["umount", folder], check=True)
sys.exit(status)
