#!/usr/bin/env python3
"""test_pages.py - what a real coordinator tells over HTTP: in the clear on loopback, over TLS and to
who shows the token elsewhere, whatever others do to its port meanwhile.

    test_pages.py TREE COORDINATOR WORKER EXECUTOR GIMBAL"""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

tree, coordinator_path, worker_path, executor_path, gimbal_path = sys.argv[1:6]
sys.path.insert(0, tree)
from tests.support import tap  # noqa: E402
from tests.support.coordinator import PATIENCE_S, TOKEN, Coordinator, await_event, secured  # noqa: E402

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (\S+)$')


def read_exposition(text):
    """Samples by name and labels; every line is as the format says."""
    samples, families, kind = {}, set(), None
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split()[2]
            assert family not in families and line.endswith("."), line
            families.add(family)
            continue
        if line.startswith("# TYPE "):
            named, kind = line.split()[2:]
            assert named == family and kind in ("gauge", "counter", "summary"), line
            assert (kind == "counter") == family.endswith("_total"), line
            continue
        match = SAMPLE.match(line)
        assert match, line
        name, labels, value = match.groups()
        ends = ("", "_sum", "_count") if kind == "summary" else ("",)
        assert name in [family + end for end in ends], line
        assert (name, labels) not in samples, line
        samples[name, labels] = float(value)
    return samples


def only(samples, name, part=""):
    """The value of the one sample of that name with this in its labels."""
    found = [value for (n, labels), value in samples.items() if n == name and part in (labels or "")]
    assert len(found) == 1, (name, part, found)
    return found[0]


def coordinator_of(*arguments, **more):
    return Coordinator(coordinator_path, *arguments, **more)


def pages_are_where_they_are_wanted():
    with coordinator_of() as without:
        assert without.url is None
    with coordinator_of("--http", "127.0.0.1:0") as one:
        for path in ("/livez", "/readyz"):
            assert one.ask(path)[::2] == (200, "ok\n")
        status, headers, text = one.ask("/metrics")
        assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4"), headers
        samples = read_exposition(text)
        assert only(samples, "gimbal_term") == 1
        assert only(samples, "gimbal_nodes", '"ALIVE"') == 0
        assert one.ask("/metrics", "HEAD")[::2] == (200, "")


def what_is_refused_says_why():
    with coordinator_of("--http", "127.0.0.1:0") as one:
        for method, path, headers, status, words in [
                ("GET", "/nowhere", {}, 404, "there is no page '/nowhere'"),
                ("POST", "/metrics", {}, 405, "not changed"),
                ("GET", "/metrics", {"Host": "evil.example"}, 421, "Host"),
                ("GET", "/metrics", {"Origin": "http://evil.example"}, 403, "another site")]:
            got, reply, text = one.ask(path, method, body="x=1" if method == "POST" else None, **headers)
            assert got == status and reply["Content-Type"] == "application/problem+json", (got, reply)
            assert words in json.loads(text)["detail"] and json.loads(text)["status"] == status, text


def who_talks_nonsense_keeps_nobody_from_being_answered():
    with coordinator_of("--http", "127.0.0.1:0") as one, contextlib.ExitStack() as stack:
        def connect():
            return stack.enter_context(socket.create_connection(("127.0.0.1", one.port)))
        for _ in range(20):
            connect()  # and says nothing
            connect().sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1")  # and no more
            connect().sendall(os.urandom(4096))
        endless = connect()
        with contextlib.suppress(ConnectionError):
            for _ in range(64):
                endless.sendall(b"GET /" + b"a" * 4096)
        assert one.ask("/livez")[0] == 200
        for _ in range(300):
            with socket.create_connection(("127.0.0.1", one.port), source_address=("127.0.0.2", 0)) as flood:
                flood.sendall(b"GET /livez HTTP/1.0\r\n\r\n")
        assert read_exposition(one.ask("/metrics")[2])


def who_holds_connections_keeps_nobody_else_from_being_answered():
    with coordinator_of("--http", "127.0.0.1:0") as one, contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(socket.create_connection(("127.0.0.1", one.port),
                                                         source_address=("127.0.0.2", 0)))
        began = time.monotonic()
        assert one.ask("/livez")[0] == 200
        assert time.monotonic() - began < 10, "it was answered when the others had been idle for long"


def beyond_loopback_it_takes_tls_and_the_token():
    with secured(coordinator_path, gimbal_path) as (one, tls):
        assert one.url.startswith("https://0.0.0.0:")
        assert one.ask("/livez", tls=tls)[::2] == (200, "ok\n")
        assert one.ask("/readyz", tls=tls)[0] == 200
        status, headers, _ = one.ask("/metrics", tls=tls)
        assert status == 401 and headers["WWW-Authenticate"].startswith("Bearer"), headers
        assert one.ask("/metrics", tls=tls, Authorization="Bearer open-sesam")[0] == 401
        status, _, text = one.ask("/metrics", tls=tls, Authorization=f"Bearer {TOKEN}")
        assert status == 200 and only(read_exposition(text), "gimbal_term") == 1
        with socket.create_connection(("127.0.0.1", one.port)) as plain:
            plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                assert b"gimbal_" not in plain.recv(4096)
        stranger = ssl.create_default_context()
        try:
            one.ask("/livez", tls=stranger)
            raise AssertionError("its certificate is taken by who does not know its authority")
        except ssl.SSLCertVerificationError:
            pass


def settings_that_cannot_be_are_refused():
    with tempfile.TemporaryDirectory() as folder:
        wide = pathlib.Path(folder) / "token"
        wide.write_text(TOKEN)
        wide.chmod(0o644)
        for arguments, code, words in [
                (["--http", "0.0.0.0:7079"], 78, "served over TLS only"),
                (["--http", "7079"], 78, "is no HOST:PORT, as in 127.0.0.1:7079"),
                (["--http-token", "/proc/nowhere"], 78, "there is no http that would ask for it")]:
            for check in ([], ["--check"]):
                done = subprocess.run([coordinator_path, "--state", f"{folder}/state", *arguments, *check],
                                      capture_output=True, text=True, timeout=PATIENCE_S)
                assert done.returncode == code and words in done.stderr, done
        for check in ([], ["--check"]):
            done = subprocess.run([coordinator_path, "--address", "tcp://127.0.0.1:0", "--state", f"{folder}/state",
                                   "--http", "127.0.0.1:0", "--http-token", wide, *check],
                                  capture_output=True, text=True, timeout=PATIENCE_S)
            assert done.returncode == 78 and "http_token: " in done.stderr, done
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            place = f"127.0.0.1:{taken.getsockname()[1]}"
            done = subprocess.run([coordinator_path, "--address", "tcp://127.0.0.1:0", "--state",
                                   f"{folder}/state", "--http", place],
                                  capture_output=True, text=True, timeout=PATIENCE_S)
            assert done.returncode == 74 and f"http: listen at {place}: the port is in use" in done.stderr, done


def a_job_is_seen_to_train_and_to_come_back():
    with coordinator_of("--http", "127.0.0.1:0") as one, contextlib.ExitStack() as stack:
        worker = stack.enter_context(one.worker(worker_path, executor_path))
        events = stack.enter_context(one.submit(gimbal_path, "elastic: {replan: false}\n"))
        await_event(events, '"event":"step"')
        samples = read_exposition(one.ask("/metrics")[2])
        assert only(samples, "gimbal_nodes", '"ALIVE"') == 1
        assert only(samples, "gimbal_devices", 'kind="cpu",state="busy"') == 1
        assert only(samples, "gimbal_jobs", '"RUNNING"') == 1
        assert only(samples, "gimbal_job_info", 'name="a-job"') == 1
        assert only(samples, "gimbal_node_silence_seconds", "node-a") < PATIENCE_S
        for name in ("step", "loss", "step_predicted_seconds", "memory_predicted_bytes", "tokens_per_second"):
            assert only(samples, f"gimbal_job_{name}", 'job_id="j-1",name="a-job"') > 0, name
        assert only(samples, "gimbal_store_commit_seconds_count") > 0
        assert only(samples, "gimbal_rpc_handling_seconds_count", "Submit") == 1
        children = pathlib.Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
        os.kill(int(children[-1]), signal.SIGKILL)
        await_event(events, '"event":"job-restarted"')
        samples = read_exposition(one.ask("/metrics")[2])
        assert only(samples, "gimbal_replans_total", "RankFailed") == 1
        assert only(samples, "gimbal_replan_seconds_total", "RankFailed") > 0
        assert only(samples, "gimbal_events_total", '"job-restarted"') == 1
        subprocess.run([gimbal_path, "cancel", "j-1"], env=one.environment, check=True)
        assert events.wait(PATIENCE_S) == 1
        samples = read_exposition(one.ask("/metrics")[2])
        assert only(samples, "gimbal_jobs", '"CANCELLED"') == 1
        assert not [key for key in samples if key[0] == "gimbal_job_step"]


sys.exit(tap.run([pages_are_where_they_are_wanted, what_is_refused_says_why,
                  who_talks_nonsense_keeps_nobody_from_being_answered,
                  who_holds_connections_keeps_nobody_else_from_being_answered,
                  beyond_loopback_it_takes_tls_and_the_token, settings_that_cannot_be_are_refused,
                  a_job_is_seen_to_train_and_to_come_back]))
