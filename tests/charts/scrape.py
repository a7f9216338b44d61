"""scrape.py - a coordinator that runs with what the chart gives it, asked as Prometheus does by the
ServiceMonitor and as the kubelet does by the probes."""
import base64
import contextlib
import http.client
import os
import socket
import ssl

from tests.charts import objects as rules
from tests.support import daemons

PATIENCE_S = 60


@contextlib.contextmanager
def coordinator(program, text, folder):
    """Until the end of the block; keys lie in the folder already. Yields the port of its pages."""
    for ours, here in (("0.0.0.0:7070", "127.0.0.1:0"), ("0.0.0.0:7079", "0.0.0.0:0"),
                       ("/run/gimbal", str(folder)), ("/var/lib/gimbal", str(folder))):
        assert ours in text, ours
        text = text.replace(ours, here)
    (folder / "coordinator.yaml").write_text(text)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIMBAL_")}
    address = folder / "address"
    process, log = daemons.start(
        [program, "--config", folder / "coordinator.yaml", "--address-file", address], folder, clean)
    with log, process:
        try:
            yield int(address.read_text().rsplit(":", 1)[1])
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def ask(port, path, tls, name=None, **headers):
    """Status and text of a page, from who is called by an address and takes the name for proof."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        with tls.wrap_socket(plain, server_hostname=name) as connection.sock:
            connection.request("GET", path, headers=headers)
            reply = connection.getresponse()
            return reply.status, reply.read().decode()


def as_the_kubelet(objects, port):
    """Whose certificate it is, the kubelet does not ask."""
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    pod = rules.pod_of(rules.named(objects, "StatefulSet", "demo-gimbal-coordinator"))
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        path = pod["containers"][0][probe]["httpGet"]["path"]
        assert ask(port, path, tls) == (200, "ok\n"), probe


def as_prometheus(objects, port):
    def value(key):
        data = rules.named(objects, "Secret", key["name"])["data"]
        return base64.b64decode(data[key["key"]]).decode()

    endpoint = rules.of_kind(objects, "ServiceMonitor")[0]["spec"]["endpoints"][0]
    tls = ssl.create_default_context(cadata=value(endpoint["tlsConfig"]["ca"]["secret"]))
    shown = endpoint["authorization"]
    authorization = f"{shown['type']} {value(shown['credentials'])}"
    called = port, endpoint["path"], tls, endpoint["tlsConfig"]["serverName"]
    status, text = ask(*called, Authorization=authorization)
    assert status == 200 and "\ngimbal_term 1\n" in text, (status, text)
    assert ask(*called)[0] == 401
