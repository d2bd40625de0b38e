"""Measures this webhook and another one, live against one control plane: `just bench --against BINARY`.

The other one is any webhook with the same paths and environment: it finds `TLS_CRT`, `TLS_KEY` and `HTTPS_PORT`, and the
credentials of a pod, in a mount namespace of its own. It runs twice: with the
settings that `--set NAME=VALUE` gives, which should be those of its chart, and with `QPS` and `BURST` so large that no
throttle of its own holds it back. All are posted the same reviews in interleaved rounds.
"""

import base64
import contextlib
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import baseline
from control_plane import control_plane
from report import Failure, machine, record, spread, write

BEGIN, END = "<!-- against: written by `just bench --against BINARY --write` -->", "<!-- against: end -->"
THIS, OTHER, UNTHROTTLED = "this webhook", "the other webhook", "the other webhook without its throttle"
UNLIMITED = "1000000"


@contextlib.contextmanager
def running(name: str, command: list, environment: dict, address: str, log: Path):
    """Runs a webhook until the block ends; gives it and the seconds until its first answer."""
    begun = time.monotonic()
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output, env=environment) as process:
        server = baseline.Server(name, process, address)
        try:
            ready = baseline.compact(baseline.INPUTS / "pod-without-gmsa.mutate.json")
            while True:
                try:
                    server.post("/mutate", ready)
                    break
                except OSError as error:
                    if process.poll() is not None or time.monotonic() > begun + baseline.START_LIMIT:
                        raise Failure(f"{name} does not answer ({error}); it logged:\n{log.read_text()[-2000:]}") from error
                    time.sleep(0.005)
            yield server, time.monotonic() - begun
        finally:
            process.terminate()


def reviews(webhook: baseline.Server, folder: Path) -> list[tuple[str, str, Path]]:
    """The reviews that are posted, and where."""
    mutate = baseline.compact(baseline.INPUTS / "pod-with-gmsa.mutate.json")
    patch = json.loads(base64.b64decode(webhook.post("/mutate", mutate)["patch"]))
    validate = baseline.with_contents(baseline.compact(baseline.INPUTS / "pod-with-gmsa.validate.json"), patch)
    bodies = [
        ("mutate, GMSA pod", "/mutate", mutate),
        ("validate, GMSA pod", "/validate", validate),
        ("mutate, pod without GMSA", "/mutate", baseline.compact(baseline.INPUTS / "pod-without-gmsa.mutate.json")),
    ]
    cases = []
    for name, path, body in bodies:
        (folder / name).write_bytes(body)
        cases.append((name, path, folder / name))
    return cases


def check(server: baseline.Server, cases: list) -> None:
    """Makes sure that what is measured is the right answer."""
    for name, path, body in cases:
        answer = server.post(path, body.read_bytes())
        if not answer["allowed"] or bool(answer.get("patch")) != (name == cases[0][0]):
            raise Failure(f"{server.name}, {name}: not the answer to be measured: {answer}")


def run(webhook: Path, binary: str, settings: dict, rounds: int, seconds: float) -> str:
    """The whole comparison; gives back its report."""
    with tempfile.TemporaryDirectory(prefix="gmsa-bench-") as name, control_plane(Path(name), baseline.free_address) as cluster, \
            contextlib.ExitStack() as stack:
        folder = Path(name)
        cluster.specs(["gmsa-webapp1"])
        kubeconfig, pod_files = cluster.credentials()
        started: dict[str, tuple[baseline.Server, float]] = {}

        def start(who: str, command: list, port: str, more: dict) -> None:
            environment = cluster.environment(port) | more
            log = folder / f"{len(started)}.log"
            started[who] = stack.enter_context(running(who, command, environment, f"127.0.0.1:{port}", log))

        port = lambda: baseline.free_address().rpartition(":")[2]  # noqa: E731
        start(THIS, [webhook, "--admin-listen", baseline.free_address()], port(),
              {"KUBECONFIG": str(kubeconfig), "LOG_FORMAT": "json", "MIMALLOC_PURGE_DELAY": "0"})
        # /run of its own, with a pod's credentials: client libraries look for them in one place only.
        bind = f"mount --bind {shlex.quote(str(pod_files))} /run && exec {shlex.quote(os.path.abspath(binary))}"
        other = ["unshare", "--mount", "--user", "--map-root-user", "sh", "-c", bind]
        start(OTHER, other, port(), settings)
        start(UNTHROTTLED, other, port(), settings | {"QPS": UNLIMITED, "BURST": UNLIMITED})
        cases = reviews(started[THIS][0], folder)
        for server, _ in started.values():
            check(server, cases)
        idle = {who: server.resident_mib() for who, (server, _) in started.items()}
        samples: dict[tuple[str, str], list[baseline.Sample]] = {}
        for number in range(rounds + 1):
            for case, path, body in cases:
                for who, (server, _) in started.items():
                    # A throttle makes an answer take seconds.
                    sample = baseline.measure(baseline.Case(case, path, body, 0), server, seconds, timeout="60s")
                    print(f"round {number}: {case}: {who}: {sample}", file=sys.stderr)
                    # The first round warms everything up.
                    if number:
                        samples.setdefault((case, who), []).append(sample)
        loaded = {who: server.resident_mib() for who, (server, _) in started.items()}
        version = cluster.call("GET", "/version")["gitVersion"]
    lines = ["| | requests/s | p50, ms | p99, ms | CPU per request, µs | ÷ this webhook |", "|---|---|---|---|---|---|"]
    for (case, who), runs in samples.items():
        ratios = [run.cpu / own.cpu for run, own in zip(runs, samples[case, THIS], strict=True)]
        columns = [spread([getattr(run, field) for run in runs], digits)
                   for field, digits in (("rate", 0), ("p50", 2), ("p99", 2), ("cpu", 1))]
        lines.append(f"| {case}: {who} | {' | '.join(columns)} | {'1' if who == THIS else spread(ratios, 1)} |")
    lines += ["", "| | start to first answer, ms | resident at idle, MiB | resident after the rounds, MiB |", "|---|---|---|---|"]
    for who, (_, begun) in started.items():
        lines.append(f"| {who} | {begun * 1e3:.0f} | {idle[who]:.1f} | {loaded[who]:.1f} |")
    lines += [
        "",
        f"Median (smallest–largest) of {rounds} interleaved rounds of {seconds:g} s each, {baseline.CONNECTIONS} connections, wrk on the same machine; all",
        "webhooks ask the same API server, and log to a file.",
        "",
        f"- Machine: {machine()}, kube-apiserver {version}.",
    ]
    median = lambda runs: {field: statistics.median(getattr(run, field) for run in runs) for field in ("rate", "p50", "p99", "cpu")}  # noqa: E731
    figures = {case: {who: median(samples[case, who]) for who in started} for case, _, _ in cases}
    record("against.json", figures)
    return "\n".join(lines)


def main(arguments) -> None:
    """Prints the report; with --write it goes to the page."""
    settings = dict(setting.split("=", 1) for setting in arguments.set)
    report = run(arguments.webhook or baseline.build()[0], arguments.against, settings, arguments.rounds, arguments.seconds)
    print(report)
    if arguments.write:
        write(report, BEGIN, END)
