#!/usr/bin/env python3
"""Measures `kubectl gmsa check` on manifests of 1,000 and 10,000 documents: seconds, and the most memory it held.

The manifests are made in a temporary folder: applications of four documents each (credential spec, role, binding, Deployment),
as a folder with a file for each application, as one file, and on standard input. Each run must find no problems
in as many documents as were made. Prints a Markdown table; with --write puts it into docs/measurements.md too.

Needs Linux, cargo and Python's standard library.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from report import ROOT, Failure, machine, spread, write

BEGIN, END = "<!-- check: written by `just bench-check --write` -->", "<!-- check: end -->"
SIZES = (1_000, 10_000)
DOCUMENTS = 4  # of one application
AIM = 2.0  # seconds, for the largest size

APPLICATION = """\
apiVersion: windows.k8s.io/v1
kind: GMSACredentialSpec
metadata:
  name: app-{n}
credspec:
  ActiveDirectoryConfig:
    GroupManagedServiceAccounts:
    - Name: App{n}
      Scope: contoso.com
    - Name: App{n}
      Scope: CONTOSO
  CmsPlugins:
  - ActiveDirectory
  DomainJoinConfig:
    DnsName: contoso.com
    DnsTreeName: contoso.com
    Guid: 244818ae-87ac-4fcd-92ec-e79e5252348a
    MachineAccountName: App{n}
    NetBiosName: CONTOSO
    Sid: S-1-5-21-2126449477-2524075714-3094792973
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: use-app-{n}
rules:
- apiGroups: [windows.k8s.io]
  resources: [gmsacredentialspecs]
  resourceNames: [app-{n}]
  verbs: [use]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: use-app-{n}
  namespace: team-{team}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: use-app-{n}
subjects:
- kind: ServiceAccount
  name: app-{n}
  namespace: team-{team}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app-{n}
  namespace: team-{team}
  labels: {{app.kubernetes.io/name: app-{n}, app.kubernetes.io/part-of: shop}}
spec:
  replicas: 2
  selector:
    matchLabels: {{app.kubernetes.io/name: app-{n}}}
  template:
    metadata:
      labels: {{app.kubernetes.io/name: app-{n}}}
      annotations: {{gmsa-webhook/random-hostname: "true"}}
    spec:
      serviceAccountName: app-{n}
      os: {{name: windows}}
      nodeSelector: {{kubernetes.io/os: windows, node.kubernetes.io/windows-build: 10.0.20348}}
      securityContext:
        windowsOptions:
          gmsaCredentialSpecName: app-{n}
      containers:
      - name: iis
        image: registry.example.com/shop/app-{n}:1.0.0
        ports:
        - containerPort: 80
        env:
        - name: LISTEN
          value: ":80"
        - name: BACKEND
          valueFrom:
            configMapKeyRef: {{name: app-{n}, key: backend}}
        resources:
          requests: {{cpu: 100m, memory: 256Mi}}
          limits: {{memory: 512Mi}}
        livenessProbe:
          httpGet: {{path: /, port: 80}}
          periodSeconds: 10
"""


@dataclass(frozen=True)
class Run:
    """What one run took."""

    seconds: float
    mebibytes: float


def applications(documents: int) -> Iterator[str]:
    """The manifests of enough applications for this many documents."""
    for n in range(documents // DOCUMENTS):
        yield APPLICATION.format(n=n, team=n % 20)


def make(folder: Path, documents: int) -> dict[str, Path]:
    """Writes the same documents in each form; gives the path of each."""
    files = folder / "files"
    files.mkdir()
    whole = folder / "all.yaml"
    with whole.open("w", encoding="utf-8") as out:
        for n, application in enumerate(applications(documents)):
            (files / f"app-{n}.yaml").write_text(application, encoding="utf-8")
            out.write(f"{application}---\n")
    return {"a folder, a file for each application": files, "one file": whole, "standard input": whole}


def check(program: Path, path: Path, stdin: bool, documents: int) -> Run:
    """Runs it once."""
    with tempfile.TemporaryFile() as report, path.open("rb") if stdin else open(os.devnull, "rb") as source:
        start = time.perf_counter()
        process = subprocess.Popen([program, "check", "-f", "-" if stdin else path], stdin=source, stdout=report)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        report.seek(0)
        last = report.read().decode().splitlines()[-1:]
    if process.returncode != 0 or last != [f"no problems found in {documents} objects"]:
        raise Failure(f"{path}: exit code {process.returncode}, and at the end: {last}")
    return Run(seconds, usage.ru_maxrss / 1024)


def measure(program: Path, runs: int) -> tuple[str, bool]:
    """The report, and whether the aim is met."""
    rows = ["| documents | as | MiB of YAML | seconds | most memory, MiB |", "|---|---|---|---|---|"]
    met = True
    for documents in SIZES:
        with tempfile.TemporaryDirectory(prefix="gmsa-check-") as name:
            for form, path in make(Path(name), documents).items():
                stdin = form == "standard input"
                done = [check(program, path, stdin, documents) for _ in range(runs)]
                seconds = [run.seconds for run in done]
                met &= statistics.median(seconds) < AIM
                size = (Path(name) / "all.yaml").stat().st_size / 2**20
                cells = [
                    f"{documents:,}",
                    form,
                    f"{size:.1f}",
                    spread(seconds, 2),
                    spread([run.mebibytes for run in done], 0),
                ]
                rows.append(f"| {' | '.join(cells)} |")
                print(rows[-1], file=sys.stderr)
    notes = f"Median (smallest–largest) of {runs} runs of the released program.\n\n- Machine: {machine()}."
    return "\n".join(rows) + f"\n\n{notes}", met


def build() -> Path:
    """The program as it is released."""
    command = ["cargo", "build", "--locked", "--profile", "dist-plugin", "--package", "kubectl-gmsa"]
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        raise Failure("the program cannot be built")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return ROOT / target / "dist-plugin" / "kubectl-gmsa"


def main() -> int:
    """Exit code 0 where the aim is met, 1 where it is missed, 2 where nothing could be measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="runs of each (default 5)")
    parser.add_argument("--write", action="store_true", help="update docs/measurements.md")
    options = parser.parse_args()
    try:
        report, met = measure(build(), options.runs)
        print(report)
        if options.write:
            write(report, BEGIN, END)
    except (Failure, OSError) as error:
        print(f"check.py: {error}", file=sys.stderr)
        return 2
    if not met:
        print(f"check.py: slower than the aim of {AIM:g} s", file=sys.stderr)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
