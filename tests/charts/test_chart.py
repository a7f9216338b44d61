#!/usr/bin/python3
"""test_chart.py - the chart, rendered with many values: its objects fit together, its settings are
what the daemons read, upgrades keep keys, and wrong values are refused in words.

    test_chart.py TREE WORKDIR COORDINATOR WORKER

The renderer beside this file is built into WORKDIR; see there what it is."""
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

tree, workdir = map(pathlib.Path, sys.argv[1:3])
coordinator, worker = sys.argv[3:5]
sys.path.insert(0, str(tree))
from tests.support import daemons, tap  # noqa: E402

try:
    import jsonschema
    import yaml
    from tests.charts import objects as rules, scrape
except ImportError as error:
    tap.skip("chart", f"{error}; ./dev test installs it")

CHART = tree / "charts/gimbal"
GOCODE = "/usr/share/gocode"
ROLES = ("coordinator", "worker", "user", "admin")
IMAGES = {"image": {"coordinator": {"repository": "registry.test/c"},
                    "worker": {"repository": "registry.test/w", "tag": "7"}}}
GPUS = {"name": "gpus", "kind": "DaemonSet", "gpuCount": 8, "shm": "16Gi", "memory": "200GiB",
        "image": {"tag": "cuda"}, "nodeSelector": {"accelerator": "a100"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "volumes": [{"name": "data", "hostPath": {"path": "/data"}}],
        "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}]}
have_tls = daemons.know_tls((coordinator, worker))
EXISTING = {"mine": ["tls.crt", "tls.key", "ca.crt", "worker-ca.crt", "user-ca.crt",
                     "admin-ca.crt"],
            "theirs": ["tls.crt", "tls.key", "ca.crt"], "ticket": ["token", "tokens"],
            "badge": ["token"]}
METRICS = {"metrics": {"enabled": True, "serviceMonitor": {"enabled": True}}}
PROMETHEUS = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]

# What is rendered, and each must hold together.
GOOD = {
    "defaults": {},
    "pool of GPUs": {"workerPools": [GPUS]},
    "two pools": {"workerPools": [GPUS, {"name": "cpu", "replicas": 0, "devices": 4}]},
    "no pools": {"workerPools": []},
    "existing secrets": {"tls": {"mode": "existing", "existing": {"coordinator": "mine",
                                                                  "worker": "theirs"}},
                         "join": {"existingSecret": "ticket"}},
    "no policies, no budgets": {"networkPolicy": {"enabled": False},
                                "podDisruptionBudget": {"enabled": False}},
    "own policies": {"networkPolicy": {
        "users": [{"ipBlock": {"cidr": "192.0.2.0/24"}}],
        "admins": [{"podSelector": {"matchLabels": {"role": "admin"}}}],
        "workerEgress": [{"to": [{"ipBlock": {"cidr": "198.51.100.0/24"}}]}]}},
    "metrics": {"metrics": {"enabled": True}},
    "metrics that Prometheus finds": {
        "metrics": {"enabled": True, "serviceMonitor": {
            "enabled": True, "interval": "1m30s", "labels": {"release": "prometheus"}}},
        "networkPolicy": {"metrics": PROMETHEUS}},
    "metrics by existing secrets": {
        "tls": {"mode": "existing", "existing": {"coordinator": "mine", "worker": "theirs"}},
        "metrics": {"enabled": True, "existingSecret": "badge",
                    "serviceMonitor": {"enabled": True, "interval": ""}}},
    "peers of metrics that there are not": {"networkPolicy": {"metrics": PROMETHEUS}},
    "the rest of it": {"fullnameOverride": "n", "coordinator": {
        "logLevel": "debug", "heartbeat": "500ms", "deadAfter": "1m",
        "storage": {"storageClass": "fast", "size": "1Ti"}, "nodeSelector": {"disk": "local"},
        "tolerations": [{"operator": "Exists"}], "service": {"type": "LoadBalancer"}},
        "image": {"pullSecrets": ["registry"]}, "tls": {"names": ["gimbal.example"]}},
}

# What is refused, and some of the words.
BAD = [
    ({"image": {"coordinator": {"repository": ""}}},
     "image.coordinator.repository is not set: build"),
    ({"image": {"worker": {"repository": None}}}, "image.worker.repository is not set: build"),
    ({"coordinater": {}}, "'coordinater' was unexpected"),
    ({"coordinator": {"storage": {"sice": "1Gi"}}}, "'sice' was unexpected"),
    ({"coordinator": {"heartbeat": "soon"}}, "'soon' does not match"),
    ({"workerPools": [{"replicas": 1}]}, "'name' is a required property"),
    ({"workerPools": [{"name": "a-name-too-long"}]}, "'a-name-too-long' does not match"),
    ({"workerPools": [{"name": "a", "kind": "Deployment"}]}, "'Deployment' is not one of"),
    ({"workerPools": [{"name": "a", "gpuCount": -1}]}, "-1 is less than the minimum of 0"),
    ({"workerPools": [{"name": "a", "gpus": 8}]}, "'gpus' was unexpected"),
    ({"workerPools": [{"name": "a", "memory": "12 GB"}]}, "'12 GB' does not match"),
    ({"workerPools": [{"name": "a", "volumes": [{"name": "tls"}]}]}, "should not be valid under"),
    ({"workerPools": [{"name": "a"}, {"name": "a"}]},
     "workerPools[1] (a): another pool has this name"),
    ({"workerPools": [{"name": "a", "kind": "DaemonSet", "replicas": 2}]},
     "workerPools[0] (a): a DaemonSet has one pod on each node"),
    ({"tls": {"mode": "none"}}, "'none' is not one of"),
    ({"tls": {"mode": "existing"}}, "tls.existing.coordinator is not set"),
    ({"tls": {"mode": "existing", "existing": {"coordinator": "mine"}}},
     "tls.existing.worker is not set"),
    ({"networkPolicy": {"users": [{}]}}, "{} "),
    ({"networkPolicy": {"metrics": [{}]}}, "{} "),
    ({"metrics": {"serviceMonitor": {"enabled": True}}},
     "metrics.serviceMonitor.enabled: the coordinator serves no metrics"),
    ({"metrics": {"serviceMonitor": {"interval": "often"}}}, "'often' does not match"),
    ({"metrics": {"token": "a"}}, "'token' was unexpected"),
]


class Refused(Exception):
    pass


def build_renderer():
    environment = dict(os.environ, GO111MODULE="off", GOPATH=GOCODE, GOFLAGS="",
                       GOCACHE=str(workdir / "gocache"))
    subprocess.run(["go", "build", "-o", workdir / "render", tree / "tests/charts/render.go"],
                   env=environment, check=True)


def render(values, cluster=(), revision=1):
    """The objects, after what Helm does: merge, schema, templates. cluster: for `lookup`."""
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        files = [pathlib.Path(folder) / name for name in ("objects", "images", "values")]
        for file, content in zip(files, (list(cluster), IMAGES, values)):
            file.write_text(json.dumps(content))
        done = subprocess.run([workdir / "render", CHART, "demo", "here", str(revision), *files],
                              capture_output=True, text=True)
    schema = json.loads((CHART / "values.schema.json").read_text())
    merged = json.loads(done.stdout)["values"] if done.returncode == 0 else merge_values(values)
    errors = list(jsonschema.Draft7Validator(schema).iter_errors(merged))
    if errors:
        raise Refused("; ".join(error.message for error in errors))
    if done.returncode:
        raise Refused(done.stderr)
    files = json.loads(done.stdout)["files"]
    check_notes(files.pop("gimbal/templates/NOTES.txt"), merged)
    return [one for text in files.values() for one in yaml.safe_load_all(text) if one]


def check_notes(notes, values):
    assert "rollout status" in notes
    assert ("7079" in notes) == values["metrics"]["enabled"], notes
    policy = values["networkPolicy"]
    shut_out = values["metrics"]["enabled"] and policy["enabled"] and not policy["metrics"]
    assert ("networkPolicy.metrics" in notes) == shut_out, notes


def merge_values(*layers):
    """What the renderer merges, for values that its templates refuse."""
    def merge(into, over):
        for key, value in over.items():
            if value is None:
                into.pop(key, None)
            elif isinstance(value, dict) and isinstance(into.get(key), dict):
                merge(into[key], value)
            else:
                into[key] = value
        return into
    merged = yaml.safe_load((CHART / "values.yaml").read_text())
    for layer in (json.loads(json.dumps(IMAGES)), *layers):
        merge(merged, layer)
    return merged


def secrets(objects):
    return {one["metadata"]["name"]: one["data"] for one in rules.of_kind(objects, "Secret")}


def as_cluster(objects):
    found = json.loads(json.dumps(rules.of_kind(objects, "Secret")))
    for one in found:
        one["metadata"]["namespace"] = "here"
    return found


def check_daemons_settings(objects):
    for one in rules.of_kind(objects, "ConfigMap"):
        for name, text in one["data"].items():
            program = coordinator if name == "coordinator.yaml" else worker
            with tempfile.TemporaryDirectory(dir=workdir) as folder:
                lay_out_keys(objects, pathlib.Path(folder), name.removesuffix(".yaml"))
                text = text.replace("/run/gimbal/", f"{folder}/")
                text = text if have_tls else daemons.without_tls(text)
                code, words = daemons.check_settings(program, text)
            assert code == 0, f"{one['metadata']['name']}: {words}"


def lay_out_keys(objects, folder, role):
    """As the init container does; nothing where the secrets are not of this chart."""
    for secret, place in ((f"tls-{role}", "tls"), ("join", "join"), ("metrics", "http")):
        found = next((one["data"] for one in rules.of_kind(objects, "Secret")
                      if one["metadata"]["name"].endswith(f"-{secret}")), {})
        (folder / place).mkdir()
        for name, text in found.items():
            (folder / place / name).write_bytes(base64.b64decode(text))
            (folder / place / name).chmod(0o400)


def check_addresses(objects):
    """Workers call a Service of the chart, at a port that leads to where a coordinator listens;
    pages are at the port of their name."""
    configs = {name: yaml.safe_load(text) for one in rules.of_kind(objects, "ConfigMap")
               for name, text in one["data"].items()}
    listens = configs["coordinator.yaml"]["address"]
    pods = rules.pod_of(rules.of_kind(objects, "StatefulSet")[0])
    assert pods["containers"][0]["ports"][0] == {
        "name": "worker", "containerPort": int(listens.rsplit(":", 1)[1])}, listens
    pages = [port["containerPort"] for port in pods["containers"][0]["ports"]
             if port["name"] == "http"]
    served = configs["coordinator.yaml"].get("http")
    assert pages == ([int(served.rsplit(":", 1)[1])] if served else []), served
    if "worker.yaml" in configs:
        host, port = configs["worker.yaml"]["coordinator"].removeprefix("tls+tcp://").split(":")
        service = rules.named(objects, "Service", host.removesuffix(".here.svc"))
        assert service, host
        assert int(port) in [one["port"] for one in service["spec"]["ports"]]


def renders(values):
    def case():
        objects = render(values)
        rules.check_objects(objects, EXISTING)
        check_addresses(objects)
        if not have_tls or values.get("tls", {}).get("mode") != "existing":
            check_daemons_settings(objects)
    return case


def refuses(values, words):
    def case():
        try:
            render(values)
        except Refused as refusal:
            assert words in str(refusal), refusal
        else:
            raise AssertionError(f"{values} were rendered")
    return case


def every_object_in_the_schema_says_which_keys_it_has():
    def look(schema, path):
        if schema.get("type") == "object" and "description" not in schema and path:
            closed = schema.get("additionalProperties") is False
            assert closed or path.endswith(("Selector", "ipBlock", "ports[]")), path
        for key, inner in schema.get("properties", {}).items():
            look(inner, f"{path}.{key}")
        if "items" in schema:
            look(schema["items"], f"{path}[]")
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert schema["additionalProperties"] is False
    look(schema, "")
    jsonschema.Draft7Validator.check_schema(schema)


def each_pool_is_what_it_was_asked_for():
    objects = render(GOOD["two pools"])
    gpus = rules.named(objects, "DaemonSet", "demo-gimbal-worker-gpus")
    limits = rules.pod_of(gpus)["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == "8", limits
    assert rules.pod_of(gpus)["containers"][0]["image"] == "registry.test/w:cuda"
    shm = next(v for v in rules.pod_of(gpus)["volumes"] if v["name"] == "shm")
    assert shm["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Gi"}
    cpu = rules.named(objects, "StatefulSet", "demo-gimbal-worker-cpu")
    assert cpu["spec"]["replicas"] == 0
    assert "nvidia.com/gpu" not in rules.pod_of(cpu)["containers"][0]["resources"]["limits"]


def a_pool_may_set_a_default_to_nothing():
    objects = render({"workerDefaults": {"gpuCount": 8, "nodeSelector": {"a": "b"}},
                      "workerPools": [{"name": "cpu", "gpuCount": 0, "nodeSelector": {}}]})
    pod = rules.pod_of(rules.named(objects, "StatefulSet", "demo-gimbal-worker-cpu"))
    assert "nvidia.com/gpu" not in pod["containers"][0]["resources"]["limits"]
    assert "nodeSelector" not in pod


def an_upgrade_keeps_every_key():
    before = render(METRICS)
    after = render(METRICS, as_cluster(before), revision=2)
    assert secrets(before) == secrets(after)
    other = secrets(render(METRICS))
    assert not [name for name, data in secrets(before).items() if data == other[name]]


def an_upgrade_to_metrics_makes_the_token_alone():
    before = render({})
    after = secrets(render(METRICS, as_cluster(before), revision=2))
    token = after.pop("demo-gimbal-metrics")["token"]
    assert secrets(before) == after
    assert re.fullmatch("[0-9a-f]{64}", base64.b64decode(token).decode()), token


def metrics_are_for_whom_the_policy_names():
    for given, rules_of_http in (([], []), (PROMETHEUS, [PROMETHEUS])):
        objects = render(METRICS | {"networkPolicy": {"metrics": given}})
        policy = rules.named(objects, "NetworkPolicy", "demo-gimbal-coordinator")
        assert [rule["from"] for rule in policy["spec"]["ingress"]
                if {"port": "http", "protocol": "TCP"} in rule["ports"]] == rules_of_http


def a_deleted_certificate_is_signed_anew_by_the_same_ca():
    user = "demo-gimbal-tls-user"
    objects = render({})
    before = secrets(objects)
    cluster = [one for one in as_cluster(objects) if one["metadata"]["name"] != user]
    after = secrets(render({}, cluster, revision=2))
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {user}, changed
    assert before[user]["ca.crt"] == after[user]["ca.crt"]
    verify(after, "user", after[user]["tls.crt"])


def a_lost_ca_takes_its_certificate_with_it():
    objects = render({})
    cluster = [one for one in as_cluster(objects) if one["metadata"]["name"] != "demo-gimbal-ca"]
    before, after = secrets(objects), secrets(render({}, cluster, revision=2))
    for role in ROLES:
        own = f"demo-gimbal-tls-{role}"
        assert after[own]["tls.crt"] != before[own]["tls.crt"], role
        verify(after, role, after[own]["tls.crt"])


def verify(data, role, certificate, *flags):
    """With the CA that the other side has of this role."""
    side = ("demo-gimbal-tls-worker", "ca.crt") if role == "coordinator" else (
        "demo-gimbal-tls-coordinator", f"{role}-ca.crt")
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        paths = [pathlib.Path(folder) / name for name in ("ca", "leaf")]
        for path, text in zip(paths, (data[side[0]][side[1]], certificate)):
            path.write_bytes(base64.b64decode(text))
        done = subprocess.run(["openssl", "verify", *flags, "-CAfile", *paths],
                              capture_output=True, text=True)
    assert done.returncode == 0, f"{role}: {done.stderr}"


def each_role_has_a_certificate_that_the_other_side_believes():
    data = secrets(render(GOOD["the rest of it"] | {"fullnameOverride": ""}))
    leaf = {role: data[f"demo-gimbal-tls-{role}"]["tls.crt"] for role in ROLES}
    for role in ROLES[1:]:
        verify(data, role, leaf[role], "-purpose", "sslclient")
    for name in ("demo-gimbal-coordinator.here.svc", "gimbal.example", "localhost"):
        verify(data, "coordinator", leaf["coordinator"], "-purpose", "sslserver",
               "-verify_hostname", name)
    try:
        verify(data, "admin", leaf["user"])
    except AssertionError:
        return
    raise AssertionError("a user's certificate passes for an admin's")


def the_join_token_is_one_that_the_coordinator_is_told_of():
    data = secrets(render({}))["demo-gimbal-join"]
    token, tokens = (base64.b64decode(data[key]).decode() for key in ("token", "tokens"))
    assert re.fullmatch(r"[0-9a-f]{16}\.[0-9a-f]{64}", token), token
    assert tokens == f"worker {token} 744h 10000\n", tokens


def prometheus_and_the_kubelet_are_answered():
    objects = render(METRICS)
    config = rules.named(objects, "ConfigMap", "demo-gimbal-coordinator")
    with tempfile.TemporaryDirectory(dir=workdir) as place:
        folder = pathlib.Path(place)
        lay_out_keys(objects, folder, "coordinator")
        with scrape.coordinator(coordinator, config["data"]["coordinator.yaml"], folder) as port:
            scrape.as_the_kubelet(objects, port)
            scrape.as_prometheus(objects, port)


def nodes_that_keep_their_name_keep_their_credential():
    for one in rules.of_kind(render(GOOD["two pools"]), *rules.WORKLOADS):
        claims = one["spec"].get("volumeClaimTemplates", [])
        names = [claim["metadata"]["name"] for claim in claims]
        assert names == (["state"] if one["kind"] == "StatefulSet" else []), names


def keys_are_copied_so_that_only_their_user_reads_them():
    """The init container's own script, on folders as the kubelet lays secrets out."""
    for one in rules.of_kind(render(METRICS), *rules.WORKLOADS):
        container = rules.pod_of(one)["initContainers"][0]
        role = one["metadata"]["labels"]["app.kubernetes.io/component"]
        given = {"tls": EXISTING["mine"], "join": EXISTING["ticket"]}
        if role == "coordinator":
            given["http"] = EXISTING["badge"]
        with tempfile.TemporaryDirectory(dir=workdir) as folder:
            for secret, names in given.items():
                data = pathlib.Path(folder) / "secrets" / secret / "..data"
                data.mkdir(parents=True)
                for name in names:
                    (data / name).write_text(name)
                    (data / name).chmod(0o440)
                    (data.parent / name).symlink_to(f"..data/{name}")
            script = container["args"][0]
            for place in ("/run/", "/secrets/", "/var/"):
                script = script.replace(f" {place}", f" {folder}{place}")
            subprocess.run([*container["command"], script], check=True)
            copies = [pathlib.Path(folder, "run/gimbal", secret, name)
                      for secret, names in given.items() for name in names]
            found = [path for path in pathlib.Path(folder, "run/gimbal").glob("*/*")]
            assert sorted(found) == sorted(copies), found
            for copy in copies:
                assert copy.stat().st_mode & 0o777 == 0o400 and copy.read_text() == copy.name, copy
            state = pathlib.Path(folder, "var/lib/gimbal", role)
            assert state.stat().st_mode & 0o777 == 0o700


def main():
    if not shutil.which("go"):
        tap.skip("chart", "there is no go here, to build the renderer; ./dev test installs it")
    if not os.path.isdir(f"{GOCODE}/src/github.com/Masterminds/sprig"):
        tap.skip("chart", f"sprig is not in {GOCODE}; ./dev test installs it")
    build_renderer()
    cases = [(f"{name} hold together", renders(values)) for name, values in GOOD.items()]
    cases += [(f"{json.dumps(values)} is refused", refuses(values, words)) for values, words in BAD]
    cases += [every_object_in_the_schema_says_which_keys_it_has, each_pool_is_what_it_was_asked_for,
              a_pool_may_set_a_default_to_nothing, an_upgrade_keeps_every_key,
              an_upgrade_to_metrics_makes_the_token_alone, metrics_are_for_whom_the_policy_names,
              a_deleted_certificate_is_signed_anew_by_the_same_ca,
              a_lost_ca_takes_its_certificate_with_it,
              each_role_has_a_certificate_that_the_other_side_believes,
              the_join_token_is_one_that_the_coordinator_is_told_of,
              nodes_that_keep_their_name_keep_their_credential,
              keys_are_copied_so_that_only_their_user_reads_them]
    if have_tls:
        cases += [prometheus_and_the_kubelet_are_answered]
    else:
        print("skip settings of TLS in the chart: the daemons of this tree have none")
    return tap.run(cases)


if __name__ == "__main__":
    sys.exit(main())
