"""Checks manifests of Nomina: against the schemas of several versions of Kubernetes, and whether the parts fit each other.

    validate.py VERSION,... FILE...         each FILE holds all objects of one installation
    validate.py --self-test VERSION,... FILE

The self-test breaks FILE in many ways, one at a time, and fails if one of them is not found.
"""

import copy
import functools
import ipaddress
import re
import sys
import tomllib
from pathlib import Path

import kubernetes_validate
import kubernetes_validate.utils
import yaml

# Schemas are large; they are read once for each version.
kubernetes_validate.utils.schema_contents = functools.cache(kubernetes_validate.utils.schema_contents)


class Loader(yaml.SafeLoader):
    """Refuses a key that is written twice, which YAML readers otherwise take silently."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is written twice", node.start_mark)
        return super().construct_mapping(node, deep)


def of_schema(objects, version):
    for item in objects:
        name = f"{item.get('kind')} {item.get('metadata', {}).get('name')}"
        try:
            kubernetes_validate.validate(item, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            path = ".".join(str(step) for step in error.path)
            yield f"Kubernetes {version}: {name}: {path}: {error.message[:300]}"
        except kubernetes_validate.utils.SchemaNotFoundError as error:
            yield f"Kubernetes {version}: {name}: {error.message}"
        except KeyError as error:
            yield f"Kubernetes {version}: {name}: without {error}"


def expand(text, variables):
    return re.sub(r"\$\((\w+)\)", lambda found: variables.get(found[1], found[0]), text)


def of_parts(objects):
    """What no schema knows: that names, labels, ports and times of the objects fit each other."""

    def named(kind):
        return {item["metadata"]["name"]: item for item in objects if item["kind"] == kind}

    sets = list(named("StatefulSet").values())
    if len(sets) != 1:
        yield f"{len(sets)} StatefulSets instead of one"
        return
    stateful = sets[0]
    name, namespace, spec = stateful["metadata"]["name"], stateful["metadata"].get("namespace"), stateful["spec"]
    pod = spec["template"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    container = pod["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    environment = {variable["name"]: variable for variable in container["env"]}
    replicas = spec["replicas"]

    for item in objects:
        if not namespace or item["metadata"].get("namespace") != namespace:
            yield f"{item['kind']} {item['metadata']['name']} is not in the namespace of the set"

    # Labels.
    def selects(what, selector):
        if not selector or not selector.items() <= labels.items():
            yield f"{what} does not select the pods: {selector}"

    yield from selects("the set", spec["selector"].get("matchLabels"))
    for service in named("Service").values():
        yield from selects(f"Service {service['metadata']['name']}", service["spec"].get("selector"))
    for kind, key in (("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")):
        for item in named(kind).values():
            yield from selects(kind, item["spec"][key].get("matchLabels"))

    # Ports.
    if ports["grpc"] != ports["http"] + 1000 or ports["peer"] != ports["http"] + 1001:
        yield f"the ports are not 1000 and 1001 apart: {ports}"
    for service in named("Service").values():
        for port in service["spec"]["ports"]:
            if ports.get(port["targetPort"]) != port["port"]:
                yield f"Service {service['metadata']['name']}: port {port} is not that of the container"
    for service in named("Service").values():
        peer = any(port["targetPort"] == "peer" for port in service["spec"]["ports"])
        if peer and service["metadata"]["name"] != spec["serviceName"]:
            yield f"Service {service['metadata']['name']} exposes the port between nodes"
    for policy in named("NetworkPolicy").values():
        for rule in policy["spec"]["ingress"]:
            for port in rule["ports"]:
                if port["port"] not in ports:
                    yield f"NetworkPolicy: there is no port {port['port']}"
                if port["port"] == "peer":
                    if not rule.get("from"):
                        yield "NetworkPolicy: the port between nodes is open to everybody"
                    for source in rule.get("from", []):
                        yield from selects("NetworkPolicy, port between nodes:", source.get("podSelector", {}).get("matchLabels"))
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        if probe not in container:
            yield f"there is no {probe}"
            continue
        how = container[probe]
        port = how["grpc"]["port"] if "grpc" in how else ports.get(how["httpGet"]["port"])
        if port != ports["grpc" if "grpc" in how else "http"]:
            yield f"{probe} asks at port {port}"

    # Names.
    headless = named("Service").get(spec["serviceName"])
    if headless is None or headless["spec"].get("clusterIP") != "None" or not headless["spec"].get("publishNotReadyAddresses"):
        yield f"the set's Service {spec['serviceName']} is missing, not headless, or hides pods that are not ready"
    account = pod.get("serviceAccountName")
    if pod.get("automountServiceAccountToken") is not False:
        yield "the pod gets a token of the Kubernetes API"
    for item in named("ServiceAccount").values():
        if item["metadata"]["name"] != account or item.get("automountServiceAccountToken") is not False:
            yield f"ServiceAccount {item['metadata']['name']} is not that of the pods, or hands out a token"
    volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
    claims = {claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", [])}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    if set(mounts) != set(volumes) | claims or set(volumes) & claims:
        yield f"mounts {sorted(mounts)}, volumes {sorted(volumes)}, claims {sorted(claims)} do not fit"
    config = named("ConfigMap").get(volumes.get("config", {}).get("configMap", {}).get("name"))
    if config is None:
        yield "the ConfigMap of the pods is missing"
        return
    for secret in named("Secret").values():
        wanted = environment.get("NOMINA_CLUSTER__SECRET", {}).get("valueFrom", {}).get("secretKeyRef", {})
        if wanted.get("name") != secret["metadata"]["name"] or wanted.get("key") not in secret["stringData"]:
            yield f"Secret {secret['metadata']['name']} is not what the pods ask for: {wanted}"

    # Settings.
    settings = tomllib.loads(config["data"]["nomina.toml"])
    server, cluster = settings["server"], settings.get("cluster", {})
    for key in ("http", "grpc", "peer"):
        host, _, port = server[key].rpartition(":")
        if int(port) != ports[key] or not ipaddress.ip_address(host.strip("[]")).is_unspecified:
            yield f"server.{key} = {server[key]} is not what the pod offers"
    if server["data_dir"] != mounts.get("data"):
        yield f"server.data_dir = {server['data_dir']} is not mounted"
    for key in ("tls_cert", "tls_key", "tls_ca"):
        if key in cluster and cluster[key].rpartition("/")[0] != mounts.get("tls"):
            yield f"cluster.{key} = {cluster[key]} is not mounted"
    if "mode" not in settings.get("auth", {}):
        yield "auth.mode is not written down"
    if container["args"][-1] != mounts.get("config", "") + "/nomina.toml":
        yield f"the settings are not where the pod looks for them: {container['args']}"

    # Nodes.
    stated = expand(
        environment["NOMINA_CLUSTER__ADVERTISE"]["value"],
        {"NAMESPACE": namespace},
    )
    nodes = [expand(stated, {"POD_NAME": f"{name}-{number}"}) for number in range(replicas)]
    domain = f"{spec['serviceName']}.{namespace}.svc."
    if any(not node.startswith(f"{name}-{number}.{domain}") for number, node in enumerate(nodes)):
        yield f"the nodes call themselves {nodes}"
    if replicas == 1:
        if any(key.startswith("members") for key in cluster):
            yield "a single node has a list of nodes"
    else:
        if "members" in cluster:
            members = cluster["members"]
        elif "members_file" in cluster:
            folder, _, file = cluster["members_file"].rpartition("/")
            members = config["data"].get(file, "").split() if folder == mounts.get("config") else []
        else:
            members = nodes if cluster["members_dns"] == "_http._tcp." + nodes[0].partition(".")[2].rpartition(":")[0] else []
        if members != nodes:
            yield f"the nodes call themselves {nodes}, the list is {members}"
        if "NOMINA_CLUSTER__SECRET" not in environment:
            yield "a cluster without a secret"
    if "value" in environment.get("NOMINA_CLUSTER__SECRET", {}):
        yield "the secret is written into the set"

    # Times, in seconds.
    pause = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    drain = int(server["drain_timeout"].removesuffix("s"))
    if pod["terminationGracePeriodSeconds"] < pause + drain + 5:
        yield f"{pod['terminationGracePeriodSeconds']} s are too short for a pause of {pause} s and a drain of {drain} s"

    # Rights.
    rights = {**pod.get("securityContext", {}), **container.get("securityContext", {})}
    wanted = {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for key, value in wanted.items():
        if rights.get(key) != value:
            yield f"securityContext: {key} is {rights.get(key)} instead of {value}"
    if container["image"].endswith(":latest") or not re.search(r"[:@][^/]+$", container["image"]):
        yield f"the image {container['image']} is not pinned"
    if "memory" not in container.get("resources", {}).get("requests", {}):
        yield "no memory is requested"


def problems(objects, versions):
    found = [problem for version in versions for problem in of_schema(objects, version)]
    if found:
        return found
    return list(of_parts(objects))


def read(path):
    return [item for item in yaml.load_all(Path(path).read_text(), Loader) if item is not None]


# Where, and what to write there; None takes it out. What is found must be found by the named half.
BREAKS = [
    ("schema", "StatefulSet", "spec.replicass", 3),
    ("schema", "StatefulSet", "spec.replicas", "three"),
    ("schema", "StatefulSet", "spec.selector", None),
    ("schema", "StatefulSet", "apiVersion", "apps/v1beta1"),
    ("schema", "StatefulSet", "spec.podManagementPolicy", ["Parallel"]),
    ("schema", "StatefulSet", "spec.template.spec.container", []),
    ("schema", "StatefulSet", "spec.template.spec.containers.0.lifecycle.preStop.sleep", "5s"),
    ("schema", "StatefulSet", "spec.template.spec.containers.0.readinessProbe.grpc.port", None),
    ("schema", "Service", "spec.ports.0.port", "http"),
    ("schema", "PodDisruptionBudget", "spec.maxUnavailble", 1),
    ("schema", "NetworkPolicy", "spec.ingress.0.ports.0.protocl", "TCP"),
    ("schema", "ConfigMap", "data.number", 5),
    ("parts", "StatefulSet", "metadata.namespace", "other"),
    ("parts", "StatefulSet", "spec.serviceName", "nomina"),
    ("parts", "StatefulSet", "spec.replicas", 4),
    ("parts", "StatefulSet", "spec.template.metadata.labels", {"app.kubernetes.io/name": "other"}),
    ("parts", "StatefulSet", "spec.template.spec.automountServiceAccountToken", None),
    ("parts", "StatefulSet", "spec.template.spec.terminationGracePeriodSeconds", 10),
    ("parts", "StatefulSet", "spec.template.spec.containers.0.image", "nomina"),
    ("parts", "StatefulSet", "spec.template.spec.containers.0.ports.2.containerPort", 9850),
    ("parts", "StatefulSet", "spec.template.spec.containers.0.livenessProbe", None),
    ("parts", "StatefulSet", "spec.template.spec.containers.0.livenessProbe.httpGet.port", "grpc"),
    ("parts", "StatefulSet", "spec.template.spec.containers.0.securityContext.readOnlyRootFilesystem", False),
    ("parts", "StatefulSet", "spec.template.spec.containers.0.volumeMounts.1.mountPath", "/data"),
    ("parts", "StatefulSet", "spec.template.spec.containers.0.env.2.value", "$(POD_NAME):8848"),
    ("parts", "StatefulSet", "spec.volumeClaimTemplates", None),
    ("parts", "StatefulSet", "spec.template.spec.volumes.0.configMap.name", "other"),
    ("parts", "Service", "spec.selector", None),
    ("parts", "Service", "spec.publishNotReadyAddresses", None),
    ("parts", "Service", "spec.ports.0.targetPort", "htttp"),
    ("parts", "Secret", "stringData", {"other": "x"}),
    ("parts", "NetworkPolicy", "spec.ingress.1.from", None),
    ("parts", "NetworkPolicy", "spec.ingress.1.from.0.podSelector", {}),
    ("parts", "PodDisruptionBudget", "spec.selector.matchLabels", {"a": "b"}),
    ("parts", "ServiceAccount", "automountServiceAccountToken", True),
    ("parts", "ConfigMap", "data", {"nomina.toml": "[server]\nhttp='127.0.0.1:8848'\ngrpc='0.0.0.0:9848'\npeer='0.0.0.0:9849'\n"
                                                    "data_dir='/var/lib/nomina'\ndrain_timeout='10s'\n[cluster]\nmembers=[]\n"}),
]


def broken(objects, kind, path, value):
    """A copy of `objects` with one thing changed, for each object of `kind` that has the place."""
    for index, item in enumerate(objects):
        if item["kind"] != kind:
            continue
        changed = copy.deepcopy(objects)
        *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        place = changed[index]
        try:
            for step in steps:
                place = place[step]
            if value is None:
                del place[last]
            else:
                place[last] = value
        except (KeyError, IndexError):
            continue
        yield changed


def self_test(versions, path):
    objects = read(path)
    missed = 0
    for half, kind, where, value in BREAKS:
        copies = list(broken(objects, kind, where, value))
        for version in versions:
            found = [list(of_schema(changed, version)) if half == "schema" else list(of_parts(changed)) for changed in copies]
            if not found or not all(found):
                print(f"self-test: not found: {kind} {where} = {value} (Kubernetes {version})", file=sys.stderr)
                missed += 1
    return missed


def main():
    arguments = sys.argv[1:]
    tests_itself = arguments[0] == "--self-test"
    if tests_itself:
        arguments = arguments[1:]
    versions, files = arguments[0].split(","), arguments[1:]
    supported = {".".join(version.split(".")[:2]) for version in kubernetes_validate.utils.all_versions()}
    unknown = set(versions) - supported
    if unknown or not files:
        sys.exit(f"no schemas of Kubernetes {sorted(unknown)}" if unknown else __doc__)
    if tests_itself:
        missed = self_test(versions, files[0])
        print(f"self-test: {len(BREAKS)} broken manifests, each for {len(versions)} versions of Kubernetes; not found: {missed}")
        sys.exit(missed > 0)
    failed = False
    for file in files:
        objects = read(file)
        found = problems(objects, versions) if objects else ["no objects"]
        for problem in found:
            failed = True
            print(f"{file}: {problem}", file=sys.stderr)
        if not found:
            print(f"{Path(file).name}: {len(objects)} objects fit Kubernetes {', '.join(versions)} and each other")
    sys.exit(failed)


main()
