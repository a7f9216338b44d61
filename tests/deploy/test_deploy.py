#!/usr/bin/python3
"""test_deploy.py - what is installed for a machine without Kubernetes: units that systemd takes and
finds strict enough, examples that the daemons read, packages that hold every library.

    test_deploy.py TREE UNITS COORDINATOR WORKER GIMBAL EXECUTOR

UNITS is where Meson has put the units; the others are programs."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

tree, units = map(pathlib.Path, sys.argv[1:3])
coordinator, worker, gimbal, executor = sys.argv[3:]
sys.path.insert(0, str(tree))
from tests.support import tap  # noqa: E402
from tests.support import daemons  # noqa: E402

PROGRAMS = {"coordinator": coordinator, "worker": worker}
have_tls = daemons.know_tls(PROGRAMS.values())


def unit(name):
    """The lines of the unit, by key."""
    found = {}
    for line in (units / f"gimbal-{name}.service").read_text().splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def with_built_program(name, folder):
    """The unit, but with the program where it was built: systemd looks whether it is there."""
    text = (units / f"gimbal-{name}.service").read_text()
    path = pathlib.Path(folder) / f"gimbal-{name}.service"
    path.write_text(re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={PROGRAMS[name]}", text))
    return path


def analyze(verb, name, *flags):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["systemd-analyze", verb, *flags, with_built_program(name, folder)],
                              capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def systemd_takes(name):
    def case():
        code, words = analyze("verify", name, "--man=no")
        assert code == 0 and not words.strip(), words
    return case


def the_coordinators_unit_is_strict():
    code, words = analyze("security", "coordinator", "--offline=true", "--threshold=20")
    assert code == 0, words


def systemd_makes_the_users():
    users = [tree / f"deploy/systemd/gimbal-{name}.sysusers" for name in PROGRAMS]
    done = subprocess.run(["systemd-sysusers", "--dry-run", *users], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def units_say_what_the_daemons_need():
    for name in PROGRAMS:
        lines = unit(name)
        assert lines["Type"] == ["notify"]
        assert lines["Restart"] == ["on-failure"]
        assert lines["RestartPreventExitStatus"] == ["64 65 78"]
        assert lines["StateDirectory"] == [f"gimbal/{name}"]
        assert lines["ExecStart"][0].endswith(f"/gimbal-{name}")
        assert "WatchdogSec" in lines
        users = (tree / f"deploy/systemd/gimbal-{name}.sysusers").read_text()
        assert f"u {lines['User'][0]} - " in users, users
    assert unit("worker")["LimitMEMLOCK"] == ["infinity"]
    assert unit("worker")["Delegate"] == ["yes"]


def examples_are_what_the_daemons_read():
    for name, program in PROGRAMS.items():
        text = (tree / f"deploy/etc/{name}.yaml").read_text()
        # The examples of what may be set, too.
        text = re.sub(r"(?m)^# ([a-z_]+: +[^ ]+ {2,}# )", r"\1", text)
        text = text if have_tls else daemons.without_tls(text)
        code, words = daemons.check_settings(program, text)
        # The folder that the example names is not on this machine.
        assert code == 0 or (have_tls and f"/etc/gimbal/tls/{name}" in words), words


def a_key_that_is_no_setting_is_refused():
    for name, program in PROGRAMS.items():
        code, words = daemons.check_settings(program, "no_such_key: 1\n")
        assert code == 78 and "no_such_key: unknown key" in words, words


def an_image_has_the_packages_of_every_library():
    stages = re.split(r"(?m)^FROM ", (tree / "deploy/Containerfile").read_text())
    for name, programs in (("coordinator", [coordinator, gimbal]), ("worker", [worker, executor, gimbal])):
        stage = next(text for text in stages if text.splitlines()[0].endswith(f" AS {name}"))
        listed = re.search(r"--no-install-recommends ([^&]*)&&", stage)[1]
        installed = set(listed.replace("\\", "").split())
        missing = libraries_of(programs) - with_dependencies(installed)
        assert not missing, f"{name}: {sorted(missing)} are not in the image"


def every_installed_file_is_in_a_package():
    lists = [path.read_text().splitlines() for path in (tree / "deploy/debian").glob("*.install")]
    packed = [line.split()[0].removeprefix("usr/") for lines in lists for line in lines]
    places = json.loads(output_of("meson", "introspect", "--installed", str(units.parent.parent))).values()
    assert len(places) > 12, places
    for place in places:
        # Modules for devices are not in the packages, which are for processors.
        assert place.endswith(".so") or any(f"/{path}/" in f"{place}/" for path in packed), place


def all_are_of_one_release():
    """Meson has the number, and the chart repeats it."""
    release = subprocess.run([coordinator, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    chart = (tree / "charts/gimbal/Chart.yaml").read_text()
    assert re.findall(r"(?m)^(?:appVersion|version): (.*)$", chart) == [release, release], release
    assert f"## {release} - " in (tree / "CHANGELOG.md").read_text(), release


def output_of(*line):
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout


def libraries_of(programs):
    """The packages of what the programs themselves name; those of the base system are left out."""
    needed = set()
    for program in programs:
        named = output_of("readelf", "-d", program)
        linked = output_of("ldd", program)
        # The dynamic linker is no library that is looked for.
        for library in re.findall(r"\(NEEDED\).*\[(?!ld-linux)(.*)\]", named):
            path = os.path.realpath(re.search(rf"{re.escape(library)} => (\S+)", linked)[1])
            # Where /lib is a link, dpkg may know the file by its old name.
            owner = subprocess.run(["dpkg", "-S", path, path.removeprefix("/usr")],
                                   capture_output=True, text=True)
            needed |= {line.split(":")[0] for line in owner.stdout.splitlines()}
    return needed - {"libc6", "libgcc-s1"}


def with_dependencies(packages):
    depends = output_of("dpkg-query", "-W", "-f", "${Depends}, ", *packages)
    return packages | set(re.findall(r"([a-z0-9][a-z0-9.+-]+)(?: \(|,| \|)", depends))


def main():
    cases = [units_say_what_the_daemons_need, examples_are_what_the_daemons_read,
             a_key_that_is_no_setting_is_refused, all_are_of_one_release]
    if shutil.which("meson"):
        cases += [every_installed_file_is_in_a_package]
    else:
        print("skip packages: meson, which knows what is installed, is not on the path")
    if shutil.which("systemd-analyze"):
        cases += [(f"systemd takes the {name}'s unit", systemd_takes(name)) for name in PROGRAMS]
        cases += [the_coordinators_unit_is_strict, systemd_makes_the_users]
    else:
        print("skip units: systemd-analyze is not here")
    if shutil.which("dpkg-query") and shutil.which("readelf"):
        cases += [an_image_has_the_packages_of_every_library]
    else:
        print("skip images: their packages are Debian's, and dpkg-query or readelf is not here")
    if not have_tls:
        print("skip settings of TLS in deploy/etc: the daemons of this tree have none")
    return tap.run(cases)


if __name__ == "__main__":
    sys.exit(main())
