"""Writes the bill of materials of the webhook's binary, as CycloneDX JSON, to standard output.

usage: deploy/sbom.py TARGET

Everything that is linked into the binary for TARGET stands in it, with the licence and, for what comes from the registry, the checksum of
Cargo.lock. What only builds or tests it does not, macros included. The same sources give the same text: no date, no random number.
"""

import json
import re
import subprocess
import sys


def metadata(target):
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def checksums():
    """The checksum of each package, by name and version."""
    with open("Cargo.lock", encoding="utf-8") as lock:
        package = re.compile(r'name = "(.+)"\nversion = "(.+)"\nsource = ".+"\nchecksum = "(.+)"')
        return {(name, version): checksum for name, version, checksum in package.findall(lock.read())}


def linked(graph, packages):
    """The packages that are linked into the root, the root among them, each with what it links itself."""
    nodes = {node["id"]: node for node in graph["nodes"]}
    macros = {identity for identity, package in packages.items() if is_macro(package)}
    found, todo = {}, [graph["root"]]
    while todo:
        package = todo.pop()
        if package not in found:
            needs = [need for need in nodes[package]["deps"] if any(kind["kind"] is None for kind in need["dep_kinds"])]
            found[package] = [need["pkg"] for need in needs if need["pkg"] not in macros]
            todo.extend(found[package])
    return found


def is_macro(package):
    return any("proc-macro" in target["kind"] for target in package["targets"])


def component(package, checksum):
    reference = f"pkg:cargo/{package['name']}@{package['version']}"
    described = {
        "type": "library" if checksum else "application",
        "bom-ref": reference,
        "name": package["name"],
        "version": package["version"],
        "purl": reference,
    }
    if package["license"]:
        # A slash is an old way to write OR.
        described["licenses"] = [{"expression": re.sub(r"\s*/\s*", " OR ", package["license"])}]
    if checksum:
        described["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return described


def main():
    whole = metadata(sys.argv[1])
    packages = {package["id"]: package for package in whole["packages"]}
    known = checksums()
    components, dependencies = {}, []
    links = linked(whole["resolve"], packages)
    for identity in links:
        package = packages[identity]
        components[identity] = component(package, known.get((package["name"], package["version"])))
    for identity, needs in links.items():
        depends = [components[need]["bom-ref"] for need in needs]
        dependencies.append({"ref": components[identity]["bom-ref"], "dependsOn": sorted(depends)})
    root = components.pop(whole["resolve"]["root"])
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": root},
        "components": sorted(components.values(), key=lambda one: one["bom-ref"]),
        "dependencies": sorted(dependencies, key=lambda one: one["ref"]),
    }
    json.dump(document, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
