"""Prints what a server gets from an installation: its nomina.toml, or the name of the first node.

    settings.py [--first-node] MANIFESTS
"""

import sys

import yaml

with open(sys.argv[-1]) as file:
    objects = {item["kind"]: item for item in yaml.safe_load_all(file) if item}
if "--first-node" in sys.argv:
    stateful = objects["StatefulSet"]
    environment = stateful["spec"]["template"]["spec"]["containers"][0]["env"]
    name = next(variable["value"] for variable in environment if variable["name"] == "NOMINA_CLUSTER__ADVERTISE")
    pod = stateful["metadata"]["name"] + "-0"
    print(name.replace("$(POD_NAME)", pod).replace("$(NAMESPACE)", stateful["metadata"]["namespace"]))
else:
    print(objects["ConfigMap"]["data"]["nomina.toml"])
