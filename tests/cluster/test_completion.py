#!/usr/bin/env python3
"""test_completion.py - what shells offer behind what has been typed: commands, flags, their values, and what
the coordinator knows.

    test_completion.py TREE COORDINATOR WORKER EXECUTOR GIMBAL"""
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

tree, coordinator_path, worker_path, executor_path, gimbal_path = sys.argv[1:6]
sys.path.insert(0, tree)
from tests.support import tap  # noqa: E402
from tests.support.coordinator import PATIENCE_S, Coordinator, await_event, free_port, running, small_job  # noqa: E402

nowhere = dict(os.environ, GIMBAL_ADDRESS=f"tcp://127.0.0.1:{free_port(1)}")


def gimbal(*arguments, code=0, **more):
    done = subprocess.run([gimbal_path, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, **more)
    assert done.returncode == code, done
    return done.stdout if code == 0 else done.stderr


def offered(*typed, env=None):
    """What may stand for the last word."""
    lines = gimbal("completion", "words", "--", *typed, env=env or nowhere).splitlines()
    return [line.split("\t")[0] for line in lines]


def every_command():
    """The words of all commands that there are, from the help."""
    found = [[name] for name in re.findall(r"^  ([a-z]+) ", gimbal("--help").split("\nFlags")[0], re.MULTILINE)]
    assert ["jobs"] in found and ["completion"] in found, found
    for name, in list(found):
        found += [line.split() for line in re.findall(rf"^  ({name} [a-z-]+) ", gimbal(name, "-h"), re.MULTILINE)]
    assert ["plan", "why-not"] in found, found
    return found


def every_command_and_every_flag_is_offered():
    for words in every_command():
        assert words[-1] in offered(*words[:-1], words[-1][:2]), words
        known = re.findall(r"^  (?:-\w,|   ) (--[a-z-]+)", gimbal(*words, "-h"), re.MULTILINE)
        assert "--help" in known, words
        assert sorted(offered(*words, "--")) == sorted(known), words
    assert "squeue" not in offered("") and offered("squeue", "--us") == ["--user"]
    assert offered("help", "jo") == ["jobs"] and offered("-q", "--timeout", "5s", "jo") == ["jobs"]
    assert not offered("no-such-command", "") and "--address" in offered("--")


def values_of_a_closed_set_are_offered():
    assert offered("jobs", "-o", "") == ["table", "wide", "name", "json", "jsonl"]
    assert offered("plan", "--output", "s") == ["svg", ":files"] and offered("jobs", "-o", "s") == [":files"]
    assert offered("data", "show", "--format", "") == ["auto", "uint16", "uint32"]
    assert "bmw" in offered("plan", "--search", "") and offered("plan", "--cost", "me") == ["measured"]
    assert offered("drill", "j-1", "k") == ["kill-executor", "kill-worker"] and not offered("drill", "k")
    assert offered("cluster", "token", "") == ["worker", "user"]
    assert "dp=" in offered("plan", "why-not", "")
    assert offered("completion", "") == ["bash", "fish", "zsh"]
    for typed in (["submit", ""], ["submit", "-qf", ""], ["train", "--checkpoint", ""], ["doctor", "--", ""]):
        assert offered(*typed) == [":files"], typed
    assert not offered("cancel", "--reason", "") and not offered("submit", "--timeout", "")
    # As zsh and fish have a word with a value, and as bash has it, which parts it.
    assert offered("jobs", "--output=js") == ["--output=json", "--output=jsonl", ":files"]
    assert offered("jobs", "--output", "=", "js") == ["json", "jsonl", ":files"]
    assert offered("jobs", "--output", "=") == offered("jobs", "-o", "")


def keys_are_offered_level_by_level():
    top = offered("explain", "")
    assert "train." in top and "cluster" in top and "name" in top and not [key for key in top if "lr" in key], top
    assert "train.lr" in offered("explain", "train.") and offered("explain", "train.step") == ["train.steps"]
    assert "cluster.nodes." in offered("explain", "cluster.n")
    for key in offered("explain", "job.") + offered("explain", "cluster."):
        gimbal("explain", key)


def jobs_and_nodes_are_those_of_the_coordinator():
    with Coordinator(coordinator_path) as one, contextlib.ExitStack() as stack:
        events = stack.enter_context(running(gimbal_path, "events", "-w", env=one.environment, text=True,
                                             stdout=subprocess.PIPE))
        stack.enter_context(one.worker(worker_path, executor_path, "node-a"))
        await_event(events, "node-joined")
        job = small_job(one.folder) + "devices: {min: 9}\n"
        gimbal("submit", "-f", "-", input=job, code=2, env=one.environment)  # it waits
        for typed in (["logs"], ["cancel"], ["trace"], ["drill"], ["jobs"], ["jobs", "j-9"], ["plan", "show"]):
            assert "j-1" in offered(*typed, "j", env=one.environment), typed
        assert offered("drain", "", env=one.environment) == ["node-a"]
        assert offered("nodes", "x", "n", env=one.environment) == ["node-a"]
        assert offered("drill", "j-1", "stop", "--node", "", env=one.environment) == ["node-a"]
        # Wherever it is said to be, as bash parts it.
        host, port = one.address.removeprefix("tcp://").split(":")
        assert offered("--address", "tcp", ":", f"//{host}", ":", port, "logs", "") == ["j-1"]
        assert offered("logs", f"--address={one.address}", "") == ["j-1"]
        for shell in ("bash", "zsh", "fish"):
            assert in_shell(shell, ["logs", ""], one.environment) in (["j-1"], None), shell


def who_does_not_answer_is_not_waited_for():
    assert offered("logs", "") == [] and offered("plan", "explain", "") == [":files"]
    with contextlib.closing(socket.socket()) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        begin = time.monotonic()
        there = dict(os.environ, GIMBAL_ADDRESS=f"tcp://127.0.0.1:{silent.getsockname()[1]}")
        assert offered("logs", "", env=there) == []
        assert time.monotonic() - begin < PATIENCE_S / 2


ask = {
    "bash": (["--norc", "-c"], 'eval "$("$0" completion bash)"; COMP_WORDS=(gimbal "$@"); COMP_CWORD=$#; _gimbal "$0"; '
                               'printf "%s\\n" "${COMPREPLY[@]}"'),
    # What zsh's own functions would show.
    "zsh": (["-fc"], '_describe() { local -a all; all=("${(@P)2}"); print -rl -- "${all[@]%%:*}"; }; '
                     '_files() { print -rl -- $words[CURRENT]*(N); }; eval "$("$0" completion zsh)"; '
                     '[[ ${_comps[gimbal]} == _gimbal ]] || exit; words=("$0" "$@"); CURRENT=$#words; _gimbal'),
    "fish": (["--no-config", "-c"], '$argv[1] completion fish | source; alias gimbal=$argv[1]; '
                                    'complete -C "$argv[1] $argv[2..-1]"'),
}


def in_shell(shell, typed, env=None):
    """What this shell offers for the last word; None where it is not installed."""
    if not shutil.which(shell):
        print(f"# {shell} is not installed here: it has not run its completion")
        return None
    flags, script = ask[shell]
    with tempfile.TemporaryDirectory() as home:  # shells write into it
        done = subprocess.run([shell, *flags, script, gimbal_path, *typed], capture_output=True, text=True,
                              env=dict(env or nowhere, HOME=home), timeout=PATIENCE_S, cwd=tree)
    return [line.split("\t")[0] for line in done.stdout.splitlines() if line]


def shells_offer_what_they_are_told():
    for typed, wanted in ((["jo"], ["jobs"]), (["jobs", "--u"], ["--user"]), (["plan", "why"], ["why-not"]),
                          (["drill", "j-1", "kill-w"], ["kill-worker"]), (["logs", ""], []),
                          (["submit", "-f", "READM"], ["README.md"])):
        for shell in ask:
            found = in_shell(shell, typed)
            assert found in (wanted, None), (shell, typed, found)
    assert in_shell("bash", ["jobs", "--output", "=", "jsonl"]) == ["jsonl"]
    assert "known: bash, fish, zsh" in gimbal("completion", "csh", code=64)
    assert "'zsh' is one argument too many" in gimbal("completion", "bash", "zsh", code=64)


sys.exit(tap.run([every_command_and_every_flag_is_offered, values_of_a_closed_set_are_offered,
                  keys_are_offered_level_by_level, jobs_and_nodes_are_those_of_the_coordinator,
                  who_does_not_answer_is_not_waited_for, shells_offer_what_they_are_told]))
