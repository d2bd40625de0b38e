"""Writes the bill of materials of a released program, as CycloneDX JSON, to standard output.

usage: deploy/sbom.py TARGET LINKER PACKAGE

Everything that is linked into the program of PACKAGE for TARGET is in it, with the licence and, for what comes from the registry, the checksum of
Cargo.lock; Rust's own library and, where the binary is static for Linux, LINKER's C library too. What only builds or tests it does not, macros
included. The same sources and tools give the same text: no date, no random number.
"""

import json
import pathlib
import re
import subprocess
import sys


def output(*command, given=""):
    return subprocess.run(command, check=True, input=given, stdout=subprocess.PIPE, text=True).stdout


def metadata(target):
    return json.loads(output("cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target))


def tools(target, linker):
    """What the tools bring along."""
    rust = re.search("^release: (.+)$", output("rustc", "--version", "--verbose"), re.MULTILINE)
    brought = [component("generic", "rust-std", rust[1], "MIT OR Apache-2.0")]
    if "musl" in target:
        root = pathlib.Path(output("rustc", "--print", "target-libdir", "--target", target).strip())
        version = re.search(rb"\0(1\.2\.\d+)\0", (root / "self-contained" / "libc.a").read_bytes())
        return [component("generic", "musl", version[1].decode(), "MIT"), *brought]
    if "linux" not in target:
        return brought
    macros = output(linker, "-E", "-dM", "-", given="#include <features.h>\n")
    glibc = [re.search(f"^#define {macro} (.+)$", macros, re.MULTILINE) for macro in ("__GLIBC__", "__GLIBC_MINOR__")]
    return [component("generic", "glibc", ".".join(number[1] for number in glibc), "LGPL-2.1-or-later"), *brought]


def checksums():
    """The checksum of each package, by name and version."""
    with open("Cargo.lock", encoding="utf-8") as lock:
        package = re.compile(r'name = "(.+)"\nversion = "(.+)"\nsource = ".+"\nchecksum = "(.+)"')
        return {(name, version): checksum for name, version, checksum in package.findall(lock.read())}


def linked(graph, packages, root):
    """The packages that are linked into the root, the root among them, each with what it links itself."""
    nodes = {node["id"]: node for node in graph["nodes"]}
    macros = {identity for identity, package in packages.items() if is_macro(package)}
    found, todo = {}, [root]
    while todo:
        package = todo.pop()
        if package not in found:
            needs = [need for need in nodes[package]["deps"] if any(kind["kind"] is None for kind in need["dep_kinds"])]
            found[package] = [need["pkg"] for need in needs if need["pkg"] not in macros]
            todo.extend(found[package])
    return found


def is_macro(package):
    return any("proc-macro" in target["kind"] for target in package["targets"])


def component(registry, name, version, licence, checksum=None, kind="library"):
    reference = f"pkg:{registry}/{name}@{version}"
    described = {"type": kind, "bom-ref": reference, "name": name, "version": version, "purl": reference}
    if licence:
        # A slash is an old way to write OR.
        described["licenses"] = [{"expression": re.sub(r"\s*/\s*", " OR ", licence)}]
    if checksum:
        described["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return described


def main():
    target, linker, program = sys.argv[1:]
    whole = metadata(target)
    packages = {package["id"]: package for package in whole["packages"]}
    known, brought = checksums(), tools(target, linker)
    root = next(one["id"] for one in whole["packages"] if one["name"] == program and one["source"] is None)
    components, dependencies = {}, [{"ref": tool["bom-ref"], "dependsOn": []} for tool in brought]
    links = linked(whole["resolve"], packages, root)
    for identity in links:
        name, version, licence = (packages[identity][key] for key in ("name", "version", "license"))
        kind = "application" if identity == root else "library"
        components[identity] = component("cargo", name, version, licence, known.get((name, version)), kind)
    for identity, needs in links.items():
        depends = [components[need] for need in needs] + (brought if identity == root else [])
        depends = sorted(one["bom-ref"] for one in depends)
        dependencies.append({"ref": components[identity]["bom-ref"], "dependsOn": depends})
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": components.pop(root)},
        "components": sorted([*components.values(), *brought], key=lambda one: one["bom-ref"]),
        "dependencies": sorted(dependencies, key=lambda one: one["ref"]),
    }
    json.dump(document, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
