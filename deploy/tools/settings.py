"""Prints the nomina.toml of an installation: settings.py MANIFESTS"""

import sys

import yaml

with open(sys.argv[1]) as file:
    print(next(item["data"]["nomina.toml"] for item in yaml.safe_load_all(file) if item and item["kind"] == "ConfigMap"))
