"""What a review costs as everything around it grows: `just bench --growth`.

The webhook as it is released, live against a control plane of its own: with more and more credential specs in the
cluster, names in a pod, bytes in a body, and connections.
"""

import json
import math
import resource
import sys
import tempfile
from pathlib import Path

import baseline
from against import running
from control_plane import control_plane
from report import machine, record, write

BEGIN, END = "<!-- growth: written by `just bench --growth --write` -->", "<!-- growth: end -->"
SPECS = (10, 1_000, 10_000, 50_000)
NAMES = (1, 8, 24)
SIZES = (0, 64_000, 512_000, 3_000_000, 8_000_000)
CONNECTIONS = (1, 64, 1_000, 4_000)
BASE = baseline.INPUTS / "pod-with-gmsa.mutate.json"


def body(names: int = 1, size: int = 0) -> bytes:
    """A review of a pod that names this many credential specs, padded by an annotation to this size."""
    review = json.loads(BASE.read_bytes())
    pod = review["request"]["object"]
    if names > 1:
        options = lambda at: {"windowsOptions": {"gmsaCredentialSpecName": f"spec-{at}"}}  # noqa: E731
        pod["spec"]["containers"] = [
            {"name": f"c{at}", "image": "images.invalid/app:1", "securityContext": options(at)} for at in range(names)
        ]
        del pod["spec"]["securityContext"]
    pack = lambda: json.dumps(review, separators=(",", ":"), ensure_ascii=False).encode()  # noqa: E731
    if size > len(pack()):
        pod["metadata"].setdefault("annotations", {})["padding"] = ""
        pod["metadata"]["annotations"]["padding"] = "x" * (size - len(pack()))
    return pack()


def run(binary: Path, seconds: float, most: int) -> str:
    """The whole measurement; gives back its report."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    rows, figures = [], []
    with tempfile.TemporaryDirectory(prefix="gmsa-bench-") as name, control_plane(Path(name), baseline.free_address) as cluster:
        folder = Path(name)
        cluster.specs(["gmsa-webapp1"] + [f"spec-{at}" for at in range(9)])
        made = 10
        kubeconfig, _ = cluster.credentials()

        def measured(what: str, server: baseline.Server, content: bytes, connections: int, seconds: float = seconds) -> None:
            (folder / "body").write_bytes(content)
            answer = server.post("/mutate", content)
            if not answer["allowed"] or not answer.get("patch"):
                raise baseline.Failure(f"{what}: not the answer to be measured: {answer}")
            case = baseline.Case(what, "/mutate", folder / "body", 0)
            try:
                sample = baseline.measure(case, server, seconds, connections=connections, timeout="60s")
            except baseline.Failure as failure:
                # The row says so if the machine cannot open the connections in time.
                rows.append(f"| {what} | {str(failure).rpartition(': ')[2]} | | | | {server.resident_mib():.1f} |")
                return
            rows.append(f"| {what} | {sample.rate:,.0f} | {sample.p50:.2f} | {sample.p99:.2f} | {sample.cpu:,.1f} | {server.resident_mib():.1f} |")
            figures.append({"what": what, "cpu": sample.cpu, "p99": sample.p99, "resident": server.resident_mib()})
            print(rows[-1], file=sys.stderr)

        for specs in (specs for specs in SPECS if specs <= most):
            cluster.specs([f"spec-{at}" for at in range(made - 1, specs - 1)])
            made = specs
            port = baseline.free_address().rpartition(":")[2]
            environment = cluster.environment(port) | {
                "KUBECONFIG": str(kubeconfig), "LOG_FORMAT": "json", "MIMALLOC_PURGE_DELAY": "0"}
            # Without a memory limit it takes as many connections as for the chart's.
            most_open = ["--max-connections", "5000", "--max-reviews", "5000"]
            command = [binary, "--admin-listen", baseline.free_address(), *most_open]
            log = folder / f"{specs}.log"
            with running("webhook", command, environment, f"127.0.0.1:{port}", log) as (server, begun):
                baseline.until(lambda: "answered from memory" in log.read_text(), "the webhook has no list")
                measured(f"{specs:,} credential specs", server, body(), 16)
                rows[-1] += f" first answer after {begun * 1e3:.0f} ms |"
                if specs == 1_000:
                    for names in NAMES:
                        measured(f"names in the pod: {names}", server, body(names), 16)
                    for size in SIZES:
                        content = body(size=size)
                        measured(f"a body of {len(content):,} bytes", server, content, 1 if size > 500_000 else 16)
                    for connections in CONNECTIONS:
                        # It takes seconds until all of them are open.
                        measured(f"connections: {connections:,}", server, body(), connections, math.ceil(seconds + connections / 200))
        version = cluster.call("GET", "/version")["gitVersion"]
    record("growth.json", figures)
    header = ["| | requests/s | p50, ms | p99, ms | CPU per request, µs | resident, MiB | |", "|---|---|---|---|---|---|---|"]
    rows = [row if row.endswith("ms |") else f"{row} |" for row in rows]
    return "\n".join([*header, *rows, "", f"One run of wrk of {seconds:g} s each (longer with many connections), on the same machine; 16 connections unless the row says more, one from 512 kB on. The memory is that", "after the row, in one process per number of credential specs.", "", f"- Machine: {machine()}, kube-apiserver {version}."])


def main(arguments) -> None:
    """Prints the report; with --write it goes to the page."""
    report = run(arguments.webhook or baseline.build()[0], arguments.seconds, arguments.specs)
    print(report)
    if arguments.write:
        write(report, BEGIN, END)
