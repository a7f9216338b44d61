#!/usr/bin/env python3
"""test_descriptors.py - every program works with any of its standard descriptors closed: what it opens does
not get their numbers, to be written over as its output, or replaced in a child.

    test_descriptors.py TREE COORDINATOR WORKER EXECUTOR GIMBAL"""
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

tree, coordinator_path, worker_path, executor_path, gimbal_path = sys.argv[1:6]
sys.path.insert(0, tree)
from tests.support import tap  # noqa: E402
from tests.support.coordinator import PATIENCE_S, Coordinator, small_job  # noqa: E402

COMBINATIONS = [closed for count in range(4) for closed in itertools.combinations(range(3), count)]
STDOUT_NEEDED = 74


def closing(folder, closed, path):
    """A program that closes these descriptors, and becomes the one of this path."""
    file = pathlib.Path(folder) / f"{pathlib.Path(path).name}-closed"
    file.write_text(f'#!/bin/sh\nexec "{path}" "$@" {" ".join(f"{one}>&-" for one in closed)}\n')
    file.chmod(0o755)
    return file


def ended(closed, *command, stdout_needed=True, **more):
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, **more)
    assert done.returncode == (STDOUT_NEEDED if stdout_needed and 1 in closed else 0), done


def a_local_training_ends(closed):
    with tempfile.TemporaryDirectory() as folder:
        gimbal, executor = (closing(folder, closed, path) for path in (gimbal_path, executor_path))
        job = pathlib.Path(folder) / "job.yaml"
        job.write_text(small_job(pathlib.Path(folder)))
        ended(closed, gimbal, "train", "--local", "2", "-f", job, "--checkpoint", f"{folder}/saved",
              env=dict(os.environ, GIMBAL_EXECUTOR=executor))
        saved, = pathlib.Path(folder).glob("saved/*/step-3.epoch-1")
        ended(closed, executor, "--verify-checkpoint", saved, stdout_needed=False)


def a_cluster_trains(closed):
    with tempfile.TemporaryDirectory() as folder:
        coordinator, worker, executor, gimbal = (closing(folder, closed, path) for path in (
            coordinator_path, worker_path, executor_path, gimbal_path))
        with Coordinator(coordinator) as one, one.worker(worker, executor):
            job = one.folder / "job.yaml"
            job.write_text(small_job(one.folder))
            ended(closed, gimbal, "submit", "-f", job, "--wait", env=one.environment)
            listed = subprocess.run([gimbal_path, "jobs", "-a", "-o", "json"], env=one.environment,
                                    capture_output=True, check=True, timeout=PATIENCE_S)
            only, = json.loads(listed.stdout)["jobs"]
            assert only["state"] == "DONE", only


def named(closed):
    return "".join(map(str, closed)) or "none"


sys.exit(tap.run([(f"{case.__name__}_with_{named(closed)}_closed", lambda case=case, closed=closed: case(closed))
                  for case in (a_local_training_ends, a_cluster_trains) for closed in COMBINATIONS]))
