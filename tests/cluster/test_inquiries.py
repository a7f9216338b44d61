#!/usr/bin/env python3
"""test_inquiries.py - what an operator asks about an installation: its settings and where they are from, its
versions, and all that a bug report needs, in which there is no secret.

    test_inquiries.py TREE COORDINATOR WORKER EXECUTOR GIMBAL"""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

tree, coordinator_path, worker_path, executor_path, gimbal_path = sys.argv[1:6]
sys.path.insert(0, tree)
from tests.support import tap  # noqa: E402
from tests.support.coordinator import PATIENCE_S, TOKEN, Coordinator, joined, secured, small_job  # noqa: E402

CLEAN = {key: value for key, value in os.environ.items() if not key.startswith("GIMBAL_")}


def gimbal(*arguments, code=0, **more):
    more.setdefault("env", CLEAN)
    done = subprocess.run([gimbal_path, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, **more)
    assert done.returncode == code, done
    return done.stdout if code == 0 else done.stdout + done.stderr


def settings(*arguments, **more):
    found = json.loads(gimbal("config", "show", *arguments, "-o", "json", **more))["settings"]
    return {(one["program"], one["key"]): (one.get("value"), one["from"]) for one in found}


def each_setting_says_where_it_is_from():
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "coordinator.yaml"
        file.write_text("heartbeat: 2s\ndead_after: 9s\n")
        words = gimbal("config", "show", "coordinator", "--no-headers", "--", "--config", str(file), "--drills",
                       "true", env=dict(CLEAN, GIMBAL_DEAD_AFTER="8s")).splitlines()
        rows = {line.split()[1]: line.split()[2:] for line in words}
        assert rows["heartbeat"] == ["2s", f"{file}:1:12"], rows
        assert rows["dead_after"] == ["8s", "GIMBAL_DEAD_AFTER"], rows
        assert rows["drills"] == ["true", "--drills"] and rows["log_level"] == ["info", "default"], rows
    found = settings(env=dict(CLEAN, GIMBAL_MEMORY="1GiB", HOME="/home/ada"))
    assert found["worker", "memory"] == ("1GiB", "GIMBAL_MEMORY"), found
    assert found["worker", "cpuset"] == (None, "default") and found["worker", "name"][0], found
    assert found["gimbal", "address"] == ("tcp://127.0.0.1:7070", "default"), found
    assert found["coordinator", "state"][0].endswith("gimbal/coordinator"), found


def a_setting_that_is_wrong_is_said_and_the_others_are_shown():
    text = gimbal("config", "show", env=dict(CLEAN, GIMBAL_SHARE="5/2"), code=78)
    assert "gimbal-worker: GIMBAL_SHARE: '5/2' is not a share" in text and "dead_after" in text, text
    assert "write coordinator or worker" in gimbal("config", "show", "executor", code=64)
    assert "needs a subcommand: show" in gimbal("config", code=64)


def versions_are_those_of_everything_in_reach():
    with Coordinator(coordinator_path) as one, contextlib.ExitStack() as stack:
        stack.enter_context(one.worker(worker_path, executor_path))
        while not gimbal("nodes", "--no-headers", env=one.environment):
            pass
        found = json.loads(gimbal("version", "--all", "-o", "json", env=one.environment))["versions"]
        release = gimbal("version").split()[1]
        assert {version["release"] for version in found} == {release}, found
        at = {(version["program"], version["where"]): version["libraries"] for version in found}
        assert "sqlite" in at["gimbal-coordinator", "here"] and "jansson" in at["gimbal", "here"], at
        assert "protobuf-c" in at["gimbal-executor", "here"] and "nng" in at["gimbal-worker", "here"], at
        assert at["gimbal-coordinator", one.address] == at["gimbal-worker", "node-a"] == {}, at
    # Without a coordinator it shows the rest.
    text = gimbal("version", "--all", code=69, env=one.environment)
    assert "gimbal-executor  " in text and "no coordinator answers" in text, text
    # Of other commands --version is a flag as before, whatever flags of their own are given.
    assert gimbal("jobs", "-a", "--version") == gimbal("--version")


def a_bug_report_has_all_but_secrets():
    with secured(coordinator_path, gimbal_path) as (one, _):
        _, user = joined(one, gimbal)
        gimbal("submit", "-f", "-", input=small_job(one.folder), code=2, env=user)
        file = one.folder / "report.tar"
        assert gimbal("support", file, "-q", env=user) == f"{file}\n"
        assert file.stat().st_mode & 0o777 == 0o600
        found = {}
        with tarfile.open(file) as archive:
            for member in archive:
                found[member.name.split("/", 1)[1]] = archive.extractfile(member).read()
        for name, words in {"versions.txt": b"sqlite", "settings.txt": b"dead_after", "doctor.txt": b"certificates",
                            "nodes.json": b"NodeList", "jobs.txt": b"small", "events.txt": b"job-pending",
                            "j-1/job.json": b'"j-1"', "README.txt": b"before you send it",
                            "j-1/events.jsonl": b"job-pending"}.items():
            assert words in found[name], (name, found)
        secrets = [TOKEN.encode(), (one.folder / "token").read_text().strip().split(".")[1].encode()]
        for path in pathlib.Path(user["GIMBAL_TLS"]).parent.rglob("*"):
            if path.name == "credential":
                secrets += [word.encode() for word in path.read_text().split() if len(word) >= 32]
            elif path.suffix == ".key":
                secrets.append(path.read_text().splitlines()[1].encode())
        assert len(secrets) >= 7, secrets
        for secret in secrets:
            assert not any(secret in content for content in found.values()), secret
        assert "File exists" in gimbal("support", file, code=65, env=user)


def a_report_is_made_without_a_coordinator():
    with tempfile.TemporaryDirectory() as folder:
        file = gimbal("support", "-q", cwd=folder).strip()
        with tarfile.open(pathlib.Path(folder) / file) as archive:
            names = [member.name.split("/", 1)[1] for member in archive]
        assert "doctor.txt" in names and "jobs.txt" in names, names
        assert "No such file" in gimbal("support", f"{folder}/none/report.tar", code=65)


sys.exit(tap.run([each_setting_says_where_it_is_from, a_setting_that_is_wrong_is_said_and_the_others_are_shown,
                  versions_are_those_of_everything_in_reach, a_bug_report_has_all_but_secrets,
                  a_report_is_made_without_a_coordinator]))
