"""browser.py - chromium without a window, told what to do by its DevTools protocol: a page is looked at when it
shows what it is to show, however long that takes."""
import base64
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import urllib.request

PATIENCE_S = 120


def find():
    """The program; None where there is none, which is said."""
    program = shutil.which("chromium")
    if not program:
        print("# chromium is not installed here: no browser has opened the dashboard")
    return program


class Socket:
    """The client's side of a WebSocket (RFC 6455), for whole messages of text."""

    def __init__(self, url):
        port, path = re.match(r"ws://127\.0\.0\.1:(\d+)(/.*)", url).groups()
        self.socket = socket.create_connection(("127.0.0.1", int(port)), timeout=PATIENCE_S)
        self.file = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
                            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        assert b" 101 " in self.file.readline()
        while self.file.readline() != b"\r\n":
            pass

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = struct.pack("!B", 0x80 | len(data)) if len(data) < 126 else struct.pack("!BH", 0xfe, len(data))
        assert len(data) < 65536
        self.socket.sendall(b"\x81" + size + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(data)))

    def receive(self):
        text, last = b"", False
        while not last:
            first, size = self.file.read(2)
            if size >= 126:
                form = "!H" if size == 126 else "!Q"
                size = struct.unpack(form, self.file.read(struct.calcsize(form)))[0]
            text, last = text + self.file.read(size), first & 0x80
        return text.decode()


class Browser:
    """One page, until its context ends; what it complained of is in complaints."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             "--remote-debugging-port=0", f"--user-data-dir={self.profile.name}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.number, self.complaints, self.loaded = 0, [], 0
        url = next(match[1] for match in (re.search(r"(ws://\S+)", line) for line in self.process.stderr) if match)
        # It writes on: nobody reads, and a full pipe would stop it.
        os.set_blocking(self.process.stderr.fileno(), False)
        pages = url.split("/devtools", 1)[0].replace("ws:", "http:") + "/json"
        with urllib.request.urlopen(pages, timeout=PATIENCE_S) as reply:
            page = next(item for item in json.load(reply) if item["type"] == "page")
        self.socket = Socket(page["webSocketDebuggerUrl"])
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.process.terminate()
        self.process.stderr.close()
        self.process.wait(PATIENCE_S)
        self.profile.cleanup()

    def hear(self):
        message = json.loads(self.socket.receive())
        method, what = message.get("method"), message.get("params", {})
        self.loaded += method == "Page.loadEventFired"
        if method in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(what)
        if method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning"):
            self.complaints.append(what)
        return message

    def call(self, method, **what):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": what}))
        while (message := self.hear()).get("id") != self.number:
            pass
        assert "error" not in message, message
        return message["result"]

    def open(self, url):
        before = self.loaded
        self.call("Page.navigate", url=url)
        while self.loaded == before:
            self.hear()

    def look(self, expression):
        """What it is in the page."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression):
        """Wait until it is true, which is looked at whenever the page changes."""
        return self.look("new Promise((done) => { const look = () => { const found = " + expression + "; if (found) done(found); };"
                         "new MutationObserver(look).observe(document, { subtree: true, childList: true, "
                         "attributes: true, characterData: true }); look(); })")

    def text(self):
        return self.look("document.documentElement.outerHTML")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key)
