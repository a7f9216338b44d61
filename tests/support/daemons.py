"""daemons.py - the daemons: what they themselves say of a settings file, and that they are ready."""
import os
import re
import select
import socket
import subprocess
import tempfile

PATIENCE_S = 60
# What belongs to TLS: files for deployment set it, whether or not the daemons were built with it.
OF_TLS = ("tls", "join", "join_tokens", "http", "http_token")


def start(command, folder, environment=os.environ):
    """The process, once it has said that it is ready, as it would to a service manager; and its log."""
    log = open(folder / "log", "w+")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(folder / "notify"))
        process = subprocess.Popen(command, stderr=log,
                                   env=dict(environment, NOTIFY_SOCKET=str(folder / "notify")))
        ended = os.pidfd_open(process.pid)
        try:
            while b"READY=1" not in read_one(told, ended):
                pass
        except AssertionError:
            process.kill()
            process.wait()
            raise AssertionError((folder / "log").read_text()) from None
        finally:
            os.close(ended)
    return process, log


def read_one(told, ended):
    found = select.select([told, ended], [], [], PATIENCE_S)[0]
    assert told in found
    return told.recv(4096)


def check_settings(program, text, *flags):
    """Run PROGRAM --check on a file of this text: (exit status, what it says)."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIMBAL_")}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([program, "--check", "--config", file.name, *flags], env=clean,
                              capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr + done.stdout


def know_tls(programs):
    """Whether all of them have the setting `tls`."""
    return not any("unknown key" in check_settings(program, "tls: /proc/nonexistent\n")[1]
                   for program in programs)


def without_tls(text):
    """The settings that are left for daemons that know nothing of TLS: calls are local then."""
    lines = [line for line in text.splitlines() if line.split(":")[0] not in OF_TLS]
    return re.sub(r"tls\+tcp://\S+", "tcp://127.0.0.1:7070", "\n".join(lines) + "\n")
