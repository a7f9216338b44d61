"""coordinator.py - a real coordinator in a folder of its own, asked over HTTP, and who works for it."""
import contextlib
import http.client
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import tempfile

from tests.support import daemons

PATIENCE_S = 60


def free_port(count):
    """The first of so many in a row that nobody has now."""
    while True:
        with contextlib.ExitStack() as stack:
            first = None
            try:
                for i in range(count):
                    place = stack.enter_context(socket.socket())
                    place.bind(("127.0.0.1", first + i if first else 0))
                    first = first or place.getsockname()[1]
            except (OSError, OverflowError):
                continue
            return first


class Coordinator:
    """One that runs until its context ends; `prepare` is given its folder before."""

    def __init__(self, program, *arguments, address=None, prepare=None):
        self.own = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.own.name)
        if prepare:
            prepare(self.folder)
        self.address = address or f"tcp://127.0.0.1:{free_port(2)}"
        self.environment = dict(os.environ, GIMBAL_ADDRESS=self.address)
        file = self.folder / "address"
        self.command = [program, "--address", self.address, "--address-file", file, "--state",
                        self.folder / "state", *arguments]
        self.process, self.log = daemons.start(self.command, self.folder)
    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE_S) == 0, (self.folder / "log").read_text()
        self.log.close()
        self.own.cleanup()

    def die_and_start_again(self):
        """It is killed, and the next one begins with its store at its address."""
        self.process.kill()
        self.process.wait(PATIENCE_S)
        self.log.close()
        os.unlink(self.folder / "notify")
        self.process, self.log = daemons.start(self.command, self.folder)

    @property
    def url(self):
        """Of its pages; None: it has none."""
        lines = (self.folder / "address").read_text().splitlines()
        return next((line.split()[1] for line in lines if line.startswith("http ")), None)

    @property
    def port(self):
        return int(self.url.rsplit(":", 1)[1])

    def ask(self, path, method="GET", tls=None, body=None, **headers):
        """Status, headers, body."""
        if tls:
            connection = http.client.HTTPSConnection("localhost", self.port, context=tls, timeout=PATIENCE_S)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request(method, path, body=body, headers=headers)
            reply = connection.getresponse()
            return reply.status, dict(reply.getheaders()), reply.read().decode()

    def worker(self, program, executor, name="node-a", memory="256MiB"):
        """A worker with one device; as running()."""
        return running(program, "--name", name, "--coordinator", self.address, "--devices", "1", "--memory",
                       memory, "--executor", executor, "--state", self.folder / name, stderr=self.log)

    def submit(self, program, more=""):
        """A job that trains until it is cancelled, and its events, line by line; as running()."""
        (self.folder / "text").write_text("the quick brown fox jumps over the lazy dog\n" * 40)
        job = self.folder / "job.yaml"
        job.write_text("apiVersion: gimbal/v1\nname: a-job\n"
                       "model: {family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16}\n"
                       f"data: {{text: ['{self.folder}/text']}}\n"
                       "train: {steps: 1000000000, global_batch: 4, lr: 0.001}\n" + more)
        return running(program, "submit", "-f", job, "--wait", "-o", "jsonl", env=self.environment,
                       stdout=subprocess.PIPE, text=True)


TOKEN = "open-sesame"


@contextlib.contextmanager
def secured(program, gimbal):
    """A coordinator beyond loopback, whose pages go over TLS to who shows TOKEN; and a client's context of TLS."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([gimbal, "cluster", "init", "-q", f"{folder}/tls"], check=True, capture_output=True)
        token = pathlib.Path(folder) / "token"
        token.write_text(TOKEN + "\n")
        token.chmod(0o600)
        tls = ssl.create_default_context(cafile=f"{folder}/tls/coordinator/ca.crt")
        with Coordinator(program, "--tls", f"{folder}/tls/coordinator", "--http", "0.0.0.0:0", "--http-token", token,
                         address=f"tls+tcp://127.0.0.1:{free_port(6)}") as one:
            yield one, tls


def joined(one, gimbal):
    """The environments of an administrator and of the user ada, who has joined a secured coordinator with a
    token that is good for another one. gimbal runs the command with its arguments and env."""
    tls = pathlib.Path(one.process.args[one.process.args.index("--tls") + 1]).parent
    admin, user = (dict(one.environment, GIMBAL_TLS=str(tls / role)) for role in ("admin", "user"))
    gimbal("cluster", "token", "user", "--uses", "2", "--file", one.folder / "token", env=admin)
    gimbal("cluster", "join", one.folder / "token", "--name", "ada", env=user)
    return admin, user


def small_job(folder):
    """The text of a job of three steps; what it learns lies in the folder."""
    (folder / "text").write_text("the quick brown fox jumps over the lazy dog\n" * 40)
    return ("apiVersion: gimbal/v1\nname: small\n"
            "model: {family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16}\n"
            f"data: {{text: ['{folder}/text']}}\n"
            "train: {steps: 3, global_batch: 4, lr: 0.001}\n")


def await_event(events, words):
    for line in events.stdout:
        if words in line:
            return line
    raise AssertionError(f"no {words}")


@contextlib.contextmanager
def running(*command, **more):
    """A process, which is ended at the latest with the case."""
    with subprocess.Popen(command, **more) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(PATIENCE_S)
