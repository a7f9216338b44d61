#!/usr/bin/env python3
"""test_manual.py - pages of the manual: no command, flag, setting or key is missing, and man takes them.

    test_manual.py TREE PAGES COORDINATOR WORKER GIMBAL

PAGES is the folder that Meson has put them in."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

tree, pages, coordinator, worker, gimbal = sys.argv[1:]
sys.path.insert(0, tree)
from tests.support import tap  # noqa: E402

FILES = ("gimbal.1", "gimbal-job.5", "gimbal-coordinator.8", "gimbal-worker.8")


def said(*line, **more):
    return subprocess.run(line, capture_output=True, text=True, check=True, timeout=60, **more).stdout


def page(file):
    """Its words, as a reader without a terminal's letters has them."""
    text = (pathlib.Path(pages) / file).read_text()
    return re.sub(r"\\f[BIR]", "", text).replace("\\-", "-").replace("\\e", "\\").replace("\\&", "")


def offered(*typed):
    return [line.split("\t")[0] for line in said(gimbal, "completion", "words", "--", *typed).splitlines()]


def every_command_and_every_flag_is_there():
    text = page("gimbal.1")
    above, *below = re.split(r'(?m)^\.SS "gimbal (.*)"$', text.split(".SH EXIT STATUS")[0])
    about = dict(zip(below[::2], below[1::2]))
    names = offered("")
    assert "submit" in names, names
    for first in names:
        second = [f"{first} {word}" for word in offered(first, "") if f"{first} {word}" in about]
        known = said(gimbal, first, "-h")
        assert second == re.findall(rf"(?m)^  ({first} [a-z-]+) ", known), (first, second)
        for name in [first, *second]:
            for flag in offered(*name.split(), "--"):
                assert re.search(rf"{flag}\b", about[name]), (name, flag)
    for flag in offered("--"):
        assert f"{flag}" in above, flag


def every_key_of_a_job_is_there():
    text = page("gimbal-job.5")
    keys = json.loads(said(gimbal, "explain", "job", "-o", "json"))["keys"]
    assert len(keys) > 50, keys
    for key in keys:
        assert f"\n{key['key']} (" in text, key
        assert key["about"] in " ".join(text.split()), key


def every_setting_of_a_daemon_is_there():
    for program, file in ((coordinator, "gimbal-coordinator.8"), (worker, "gimbal-worker.8")):
        text = page(file)
        names = re.findall(r"(?m)^([a-z_.]+)\b", said(program, "--show"))
        assert "log_level" in names, names
        for name in names:
            assert f"--{re.sub('[_.]', '-', name)} " in text, (file, name)


def man_takes_them():
    paths = [f"{pages}/{file}" for file in FILES]
    tried = 0
    if shutil.which("mandoc"):
        tried += 1
        done = subprocess.run(["mandoc", "-T", "lint", *paths], capture_output=True, text=True, timeout=60)
        assert not done.stdout, done.stdout
    for path in paths if shutil.which("man") and shutil.which("groff") else ():
        tried += 1
        done = subprocess.run(["man", "--warnings", "-l", path], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and not done.stderr and "COORDINATOR" in done.stdout.upper(), done
    if not tried:
        print("# neither mandoc nor man is installed here: nobody has read them")


sys.exit(tap.run([every_command_and_every_flag_is_there, every_key_of_a_job_is_there,
                  every_setting_of_a_daemon_is_there, man_takes_them]))
