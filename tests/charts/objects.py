"""objects.py - what must hold among the objects of a rendered chart, whatever the values."""
import re

LABEL_MAX = 63
WORKLOADS = {"StatefulSet", "DaemonSet"}


def labelled(name):
    return re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) and len(name) <= LABEL_MAX


def of_kind(objects, *kinds):
    return [one for one in objects if one["kind"] in kinds]


def named(objects, kind, name):
    return next((o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name), None)


def pod_of(workload):
    return workload["spec"]["template"]["spec"]


def containers_of(workload):
    pod = pod_of(workload)
    return pod.get("initContainers", []) + pod["containers"]


def selected(objects, labels):
    """The workloads whose pods have these labels."""
    return [one for one in of_kind(objects, *WORKLOADS)
            if labels.items() <= one["spec"]["template"]["metadata"]["labels"].items()]


def check_names(objects):
    seen = set()
    for one in objects:
        key = one["kind"], one["metadata"]["name"]
        assert key not in seen, f"{key} is there twice"
        seen.add(key)
        assert labelled(key[1]), f"{key}: no name for a thing"
        for label, value in one["metadata"]["labels"].items():
            assert len(value) <= LABEL_MAX, f"{key}: {label} is too long"
        # A hash is added for the pods' label.
        assert one["kind"] != "StatefulSet" or len(key[1]) <= 52, f"{key}: the name is too long"


def check_selectors(objects):
    for one in of_kind(objects, *WORKLOADS):
        found = selected(objects, one["spec"]["selector"]["matchLabels"])
        assert found == [one], f"{one['metadata']['name']} selects {len(found)} workloads' pods"
    for one in of_kind(objects, "Service"):
        assert selected(objects, one["spec"]["selector"]), f"{one['metadata']['name']}: no pods"
    for one in of_kind(objects, "PodDisruptionBudget"):
        found = selected(objects, one["spec"]["selector"]["matchLabels"])
        assert len(found) == 1 and found[0]["kind"] == "StatefulSet", one["metadata"]["name"]


def check_policies(objects):
    """A rule's own peers are there, and its named ports are of the pods it is for."""
    for policy in of_kind(objects, "NetworkPolicy"):
        pods = selected(objects, policy["spec"]["podSelector"]["matchLabels"])
        ports = {port["name"] for one in pods for container in pod_of(one)["containers"]
                 for port in container.get("ports", [])}
        assert pods, policy["metadata"]["name"]
        for rule in policy["spec"]["ingress"]:
            wanted = {port["port"] for port in rule.get("ports", [])}
            assert wanted <= ports, f"{policy['metadata']['name']}: {wanted - ports}"
        for rule in policy["spec"]["ingress"] + policy["spec"]["egress"]:
            for peer in rule.get("from", []) + rule.get("to", []):
                labels = peer.get("podSelector", {}).get("matchLabels", {})
                if "app.kubernetes.io/component" in labels:
                    assert selected(objects, labels), labels


def check_volumes(objects):
    for one in of_kind(objects, *WORKLOADS):
        volumes = [volume["name"] for volume in pod_of(one).get("volumes", [])]
        for claim in one["spec"].get("volumeClaimTemplates", []):
            volumes.append(claim["metadata"]["name"])
        assert len(volumes) == len(set(volumes)), f"{one['metadata']['name']}: {volumes}"
        mounted = set()
        for container in containers_of(one):
            mounts = container["volumeMounts"]
            paths = [mount["mountPath"] for mount in mounts]
            assert len(paths) == len(set(paths)), f"{container['name']}: {paths}"
            mounted |= {mount["name"] for mount in mounts}
        assert mounted == set(volumes), f"{one['metadata']['name']}: {mounted ^ set(volumes)}"


def keys_of(objects, name, existing):
    """Of the secret; None: there is none."""
    secret = named(objects, "Secret", name)
    return secret["data"] if secret else existing.get(name)


def check_references(objects, existing):
    """existing: secrets that the values name, with their keys."""
    for one in of_kind(objects, *WORKLOADS):
        name, pod = one["metadata"]["name"], pod_of(one)
        assert named(objects, "ServiceAccount", pod["serviceAccountName"]), name
        for volume in pod["volumes"]:
            if "configMap" in volume:
                assert named(objects, "ConfigMap", volume["configMap"]["name"]), volume
            if "secret" in volume:
                keys = keys_of(objects, volume["secret"]["secretName"], existing)
                assert keys is not None, f"{name}: there is no secret for {volume}"
                for item in volume["secret"].get("items", []):
                    assert item["key"] in keys, f"{name}: {volume} has no {item['key']}"
    for one in of_kind(objects, "ServiceMonitor"):
        for endpoint in one["spec"]["endpoints"]:
            for wanted in (endpoint["authorization"]["credentials"],
                           endpoint["tlsConfig"]["ca"]["secret"]):
                keys = keys_of(objects, wanted["name"], existing)
                assert keys is not None and wanted["key"] in keys, f"there is no {wanted}"


def check_services(objects):
    for service in of_kind(objects, "Service"):
        for one in selected(objects, service["spec"]["selector"]):
            ports = {port["name"]: port["containerPort"] for container in pod_of(one)["containers"]
                     for port in container.get("ports", [])}
            for port in service["spec"].get("ports", []):
                assert ports.get(port["targetPort"]) == port["port"], f"{port} is not of {ports}"
    for one in of_kind(objects, "StatefulSet"):
        service = named(objects, "Service", one["spec"]["serviceName"])
        assert service and service["spec"]["clusterIP"] == "None", one["spec"]["serviceName"]
        assert one in selected(objects, service["spec"]["selector"])


def check_monitors(objects):
    """Each target is found once, is called as its Service is, and proves to be who it is."""
    for one in of_kind(objects, "ServiceMonitor"):
        labels = one["spec"]["selector"]["matchLabels"]
        for endpoint in one["spec"]["endpoints"]:
            assert endpoint["scheme"] == "https"
            assert not endpoint["tlsConfig"].get("insecureSkipVerify")
            services = [service for service in of_kind(objects, "Service")
                        if labels.items() <= service["metadata"]["labels"].items()
                        and endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]]
            assert len(services) == 1, f"{one['metadata']['name']}: {len(services)} services"
            called = endpoint["tlsConfig"]["serverName"].split(".")
            assert called[0] == services[0]["metadata"]["name"] and called[2] == "svc", called


def check_security(objects):
    """The level "restricted", as https://kubernetes.io/docs/concepts/security has it."""
    for one in of_kind(objects, *WORKLOADS):
        pod = pod_of(one)
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        for container in containers_of(one):
            context = container["securityContext"]
            assert context == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                               "capabilities": {"drop": ["ALL"]}}, container["name"]
            assert not any("hostPort" in port for port in container.get("ports", []))


def check_keys(objects):
    """No daemon mounts a secret: it is a copy that only its user reads."""
    for one in of_kind(objects, *WORKLOADS):
        secrets = {volume["name"] for volume in pod_of(one)["volumes"] if "secret" in volume}
        for volume in pod_of(one)["volumes"]:
            assert "secret" not in volume or volume["secret"]["defaultMode"] == 0o400, volume
        for container in pod_of(one)["containers"]:
            assert not secrets & {mount["name"] for mount in container["volumeMounts"]}


def check_probes(objects):
    for one in of_kind(objects, *WORKLOADS):
        for container in pod_of(one)["containers"]:
            probes = {key for key in container if key.endswith("Probe")}
            wanted = {"startupProbe", "readinessProbe", "livenessProbe"}
            assert probes == (wanted if container["name"] == "coordinator" else set())
            ports = {port["name"] for port in container.get("ports", [])}
            for probe in probes:
                asked = container[probe].get("httpGet") or container[probe]["tcpSocket"]
                assert asked["port"] == ("http" if "http" in ports else "worker"), probe
                assert asked["port"] in ports and asked.get("scheme", "HTTPS") == "HTTPS", probe


def check_objects(objects, existing):
    for check in (check_names, check_selectors, check_policies, check_volumes, check_services,
                  check_monitors, check_security, check_keys, check_probes):
        check(objects)
    check_references(objects, existing)
