#!/usr/bin/env python3
"""test_habits.py - what people bring from other clusters: jobs by standard input, their names alone, the
end of a log, and what mistakes are answered with.

    test_habits.py TREE COORDINATOR WORKER EXECUTOR GIMBAL"""
import contextlib
import json
import os
import pathlib
import pwd
import re
import signal
import subprocess
import sys
import tempfile
import time

tree, coordinator_path, worker_path, executor_path, gimbal_path = sys.argv[1:6]
sys.path.insert(0, tree)
from tests.support import tap  # noqa: E402
from tests.support.coordinator import PATIENCE_S, Coordinator, await_event, running, small_job  # noqa: E402


def gimbal(*arguments, code=0, **more):
    done = subprocess.run([gimbal_path, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, **more)
    assert done.returncode == code, done
    return done.stdout if code == 0 else done.stderr


def jobs_come_by_standard_input_and_go_by_their_names():
    with Coordinator(coordinator_path) as one:
        job, mine = small_job(one.folder), {"env": one.environment}
        theirs = {"env": dict(one.environment, USER="ada", LOGNAME="ada", GIMBAL_USER="ada")}
        for _ in range(2):
            gimbal("submit", "-f", "-", input=job, code=2, **mine)  # there is no worker
        words = gimbal("submit", "-f", "-", input=job.replace("steps", "stepz"), code=65, **mine)
        assert "standard input:5:" in words and "did you mean 'steps'" in words, words
        assert gimbal("jobs", "-o", "name", **mine) == "j-1\nj-2\n"
        user = gimbal("jobs", "j-1", "-o", "wide", "--no-headers", **mine).split()[2]
        assert gimbal("jobs", "-u", user, "-o", "name", **mine) == "j-1\nj-2\n"
        assert gimbal("jobs", "-u", "nobody-of-that-name", "-o", "name", **theirs) == ""
        none = subprocess.run([gimbal_path, "jobs", "-u", "nobody-of-that-name"], capture_output=True, text=True,
                              **mine)
        assert none.stderr == "there are no jobs of user 'nobody-of-that-name'\n", none
        gimbal("cancel", *gimbal("jobs", "-o", "name", **mine).split()[:1], **mine)
        assert gimbal("jobs", "-o", "name", **mine) == "j-2\n"
        assert gimbal("nodes", "-o", "name", **mine) == ""
        assert "has no list of names" in gimbal("events", "-o", "name", code=64, **mine)


def a_job_that_can_be_read_once_is_trained():
    with tempfile.TemporaryDirectory() as folder:
        job = small_job(pathlib.Path(folder))
        mine = dict(os.environ, GIMBAL_EXECUTOR=executor_path, GIMBAL_PROFILE_CACHE=folder)
        result = json.loads(gimbal("train", "--local", "1", "-f", "-", "-q", "-o", "json", "--checkpoint", "none", input=job,
                                   env=mine))
        assert result["steps"] == 3, result
        # As bash has it for <(...).
        ours, theirs = os.pipe()
        os.write(theirs, job.encode())
        os.close(theirs)
        gimbal("train", "--local", "1", "-f", f"/dev/fd/{ours}", "-q", "--checkpoint", "none", env=mine, pass_fds=[ours])
        os.close(ours)


def the_last_lines_of_a_log_are_its_last():
    with Coordinator(coordinator_path) as one, contextlib.ExitStack() as stack:
        for name in ("node-a", "node-b"):
            stack.enter_context(one.worker(worker_path, executor_path, name))
        mine = {"env": one.environment}
        # Each rank says what it holds for its checkpoints.
        job = small_job(one.folder) + (f"checkpoint: {{dir: {one.folder}/saved, every: 1}}\n"
                                        "devices: {min: 2, max: 2}\nplan: {pin: {pp: 2}}\n")
        gimbal("submit", "-f", "-", "--wait", "-q", input=job, **mine)
        lines = gimbal("logs", "j-1", **mine).splitlines()
        assert len(lines) > 1, lines
        for count in (1, len(lines), len(lines) + 5):
            assert gimbal("logs", "j-1", "--tail", str(count), **mine).splitlines() == lines[-count:]
        assert gimbal("logs", "j-1", "--tail", "0", **mine) == ""
        assert gimbal("logs", "j-1", "-f", "-n", "1", **mine).splitlines() == lines[-1:]
        listed = json.loads(gimbal("logs", "j-1", "-o", "json", **mine))
        assert listed["kind"] == "LogLineList", listed
        assert [f"[{line['rank']}] {line['text']}" for line in listed["lines"]] == lines, listed
        one_by_one = gimbal("logs", "j-1", "-o", "jsonl", **mine).splitlines()
        assert [json.loads(line) for line in one_by_one] == listed["lines"], one_by_one


def an_empty_cluster_says_how_a_node_joins():
    with Coordinator(coordinator_path) as one:
        done = subprocess.run([gimbal_path, "nodes"], env=one.environment, capture_output=True, text=True,
                              timeout=PATIENCE_S)
        assert done.returncode == 0 and "'gimbal-worker' starts one" in done.stderr, done


def a_lost_node_says_why_it_is():
    with Coordinator(coordinator_path) as one:
        with one.worker(worker_path, executor_path) as worker, \
             running(gimbal_path, "events", "-w", env=one.environment, stdout=subprocess.PIPE, text=True) as events:
            await_event(events, "node-joined")
            worker.kill()
            lost = next(line for line in events.stdout if "node-lost" in line)
        node, = json.loads(gimbal("nodes", "-o", "json", env=one.environment))["nodes"]
        assert node["state"] == "LOST" and node["reason"], node
        assert lost.endswith(f"node node-a lost: {node['reason']}\n"), (lost, node)


def a_store_that_cannot_be_opened_says_why():
    with tempfile.TemporaryDirectory() as folder:
        def said(**more):
            done = subprocess.run([coordinator_path, "--state", folder, "--address", "tcp://127.0.0.1:0"],
                                  capture_output=True, text=True, timeout=PATIENCE_S, **more)
            assert done.returncode != 0, done
            return done.stderr

        store = pathlib.Path(folder) / "store.db"
        store.mkdir()
        assert f"{store}: unable to open database file: Is a directory" in said()
        os.chmod(folder, 0o555)
        words = said(**({"user": 65534} if os.geteuid() == 0 else {}))  # root may write everywhere
        assert f"{store}: nothing can be written into its folder: Permission denied" in words, words
        os.chmod(folder, 0o755)


def a_user_without_a_variable_is_the_one_of_the_process():
    with Coordinator(coordinator_path) as one:
        nameless = {key: value for key, value in one.environment.items() if key != "USER"}
        job = one.folder / "job.yaml"
        job.write_text(small_job(one.folder))
        gimbal("submit", job, "-q", code=2, env=nameless)  # the file as an argument, too
        listed, = json.loads(gimbal("jobs", "-o", "json", env=nameless))["jobs"]
        assert listed["user"] == pwd.getpwuid(os.geteuid()).pw_name, listed


def what_follows_ends_with_who_reads_it():
    with Coordinator(coordinator_path) as one:
        gimbal("submit", "-f", "-", input=small_job(one.folder), code=2, env=one.environment)  # it waits
        for words in (["events", "-w"], ["jobs", "-w"], ["logs", "j-1", "-f"]):
            ours, theirs = os.pipe()
            with subprocess.Popen([gimbal_path, *words], stdout=theirs, env=one.environment) as process:
                os.close(theirs)
                if words[0] != "logs":
                    assert os.read(ours, 1)
                os.close(ours)  # and nothing more is to be said
                assert process.wait(PATIENCE_S) in (128 + signal.SIGPIPE, -signal.SIGPIPE), words
            with open("/dev/full", "w") as full:
                done = subprocess.run([gimbal_path, *words], stdout=full, stderr=subprocess.PIPE, text=True,
                                      env=one.environment, timeout=PATIENCE_S) if words[0] != "logs" else None
            assert not done or done.returncode == 74 and "could not be written" in done.stderr, done


def data_that_become_shorter_are_said_to():
    # A sanitizer would take the signal for a fault of the program.
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":handle_sigbus=0"
    with Coordinator(coordinator_path, "--drills", "true") as one, contextlib.ExitStack() as stack:
        stack.enter_context(one.worker(worker_path, executor_path))
        events = stack.enter_context(one.submit(gimbal_path))
        await_event(events, "job-running")
        gimbal("drill", "j-1", "kill-executor", env=one.environment)
        assert "ordered kill-executor of rank 0" in gimbal("events", "j-1", env=one.environment)
        (one.folder / "text").write_text("")
        assert events.wait(PATIENCE_S) == 1
        assert "(Bus error): a file that it reads, such as the job's data, has become shorter" in gimbal(
            "events", "j-1", env=one.environment)


def a_second_worker_of_a_name_waits_for_the_first():
    with Coordinator(coordinator_path) as one, contextlib.ExitStack() as stack:
        first = stack.enter_context(one.worker(worker_path, executor_path))
        events = stack.enter_context(running(gimbal_path, "events", "-w", env=one.environment, text=True,
                                             stdout=subprocess.PIPE))
        await_event(events, "node node-a joined")
        with open(one.folder / "second", "w+") as log:
            stack.enter_context(running(worker_path, "--name", "node-a", "--coordinator", one.address, "--devices", "1",
                                        "--memory", "256MiB", "--executor", executor_path, "--state",
                                        one.folder / "other", stderr=log))
            while "this one waits until that one has ended" not in (one.folder / "second").read_text():
                assert first.poll() is None
                time.sleep(0.1)  # a file has no event that Python knows
        first.kill()
        for line in events.stdout:
            if "node" in line:
                break
        assert "node node-a lost: its connection closed" in line, line
        await_event(events, "node node-a joined")


def what_is_wrong_is_named_where_it_stands():
    with Coordinator(coordinator_path) as one:
        job, mine = small_job(one.folder), {"env": one.environment}
        for content, words in {"": "expected", "{}": "plan", "\x80": "plan"}.items():
            (one.folder / "plan").write_text(content, encoding="latin-1")
            said = gimbal("submit", "-f", "-", "--plan", one.folder / "plan", input=job, code=65, **mine)
            assert f"plan '{one.folder}/plan': " in said and words in said, said
        assert gimbal("jobs", "-o", "name", **mine) == ""
        said = gimbal("checkpoint", "verify", one.folder / "plan", code=65)
        assert "has no manifest.json" in said and "level=" not in said, said
        assert "did you mean 'train.lr'?" in gimbal("explain", "train.lrr", code=65)


def a_status_is_explained():
    lines = gimbal("explain", "status", "--no-headers").splitlines()
    known = {int(line.split()[0]) for line in lines}
    with open(f"{tree}/docs/jobs.md") as file:
        told = re.search(r"### Exit statuses\n(.*?)\n## ", file.read(), re.DOTALL).group(1)
    told = {int(number) for cell in re.findall(r"^\| ([\d, ]+) \|", told, re.MULTILINE) for number in cell.split(",")}
    assert known == told, known ^ told
    assert gimbal("explain", "73", "-o", "json") and "no longer holds" in gimbal("explain", "73")
    assert "no command ends with status 6;" in gimbal("explain", "6", code=65)


def the_version_has_a_letter():
    assert gimbal("-V") == gimbal("--version") and re.match(r"gimbal \d", gimbal("-V"))


def shown(program, key, *flags, **variables):
    """The value of a daemon's setting, and where it is from."""
    done = subprocess.run([program, "--show", *flags], capture_output=True, text=True, timeout=PATIENCE_S,
                          env={**{key: value for key, value in os.environ.items() if not key.startswith("GIMBAL_")},
                               **variables})
    assert done.returncode == 0, done
    return next(line.split("\t")[1:] for line in done.stdout.splitlines() if line.startswith(key + "\t"))


def one_address_moves_everybody():
    near, far = "tcp://127.0.0.1:7171", "tcp://127.0.0.1:7272"
    assert shown(coordinator_path, "address", GIMBAL_ADDRESS=near) == [near, "GIMBAL_ADDRESS"]
    assert shown(worker_path, "coordinator", GIMBAL_ADDRESS=near) == [near, "GIMBAL_ADDRESS"]
    assert shown(worker_path, "coordinator", GIMBAL_ADDRESS=near, GIMBAL_COORDINATOR=far) == [far, "GIMBAL_COORDINATOR"]
    # That variable is an address for everybody: it names no program.
    words = gimbal("cluster", "restore", "/proc/nowhere/backup", code=65, env=dict(os.environ, GIMBAL_COORDINATOR=far))
    assert "/proc/nowhere/backup" in words and far not in words, words


def a_state_may_lie_behind_a_symbolic_link():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "disk").mkdir()
        (folder / "state").symlink_to(folder / "disk")
        with Coordinator(coordinator_path, "--state", folder / "state/below") as one:
            assert gimbal("jobs", "-o", "name", env=one.environment) == ""
            assert (folder / "disk/below/store.db").exists()


def a_machine_of_cores_alone_says_so_in_few_words():
    if os.path.exists("/proc/driver/nvidia/version"):
        return
    with tempfile.TemporaryDirectory() as state:
        done = subprocess.run([worker_path, "--dry-run", "--state", state, "--executor", executor_path],
                              capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0 and "only the cores are devices: this machine has no others" in done.stderr, done
    assert "cannot" not in done.stderr and ".so" not in done.stderr, done.stderr


sys.exit(tap.run([jobs_come_by_standard_input_and_go_by_their_names, a_job_that_can_be_read_once_is_trained,
                  the_last_lines_of_a_log_are_its_last, an_empty_cluster_says_how_a_node_joins,
                  a_lost_node_says_why_it_is, a_store_that_cannot_be_opened_says_why,
                  a_user_without_a_variable_is_the_one_of_the_process,
                  what_follows_ends_with_who_reads_it,
                  what_is_wrong_is_named_where_it_stands, a_second_worker_of_a_name_waits_for_the_first,
                  data_that_become_shorter_are_said_to, a_status_is_explained, the_version_has_a_letter,
                  one_address_moves_everybody, a_state_may_lie_behind_a_symbolic_link,
                  a_machine_of_cores_alone_says_so_in_few_words]))
