#!/usr/bin/env python3
"""Measures the webhook against its baseline: the same listener, TLS, axum and JSON parser, and no decision.

Both servers run on loopback; wrk posts captured reviews to them in turn, round after round, so that what else the machine
does falls on all of them alike. The servers' CPU time, as the kernel accounts for it, decides: requests per second here
also measure wrk, which shares the cores. Prints a Markdown table; with --write puts it into docs/measurements.md too.

Needs Linux, cargo, wrk and Python's standard library.
"""

import argparse
import base64
import contextlib
import importlib
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from report import PAGE, ROOT, Failure, machine, spread, write

INPUTS = ROOT / "benches" / "baseline"
BEGIN, END = "<!-- baseline: written by `just bench --write` -->", "<!-- baseline: end -->"
CONNECTIONS = 16
SERVERS = BASELINE, WEBHOOK = "baseline", "webhook"
START_LIMIT = 30.0  # seconds
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Server:
    """A server that runs."""

    name: str
    process: subprocess.Popen
    address: str

    def cpu_seconds(self) -> float:
        """User and system time of all its threads so far."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii")
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS

    def resident_mib(self) -> float:
        """Resident memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)[1]) / 1024

    def post(self, path: str, body: bytes) -> dict:
        """Posts one review; gives back its answer."""
        # The certificate was made a moment ago on this machine, for this run.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        request = urllib.request.Request(f"https://{self.address}{path}", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=5, context=context) as response:
            return json.load(response)["response"]


@dataclass(frozen=True)
class Case:
    """One kind of review, posted to the baseline and to the webhook."""

    name: str
    path: str
    body: Path
    cpu_aim: float


@dataclass(frozen=True)
class Sample:
    """One run of wrk against one server, and what it cost the server."""

    rate: float  # requests per second
    p50: float  # milliseconds
    p99: float  # milliseconds
    cpu: float  # microseconds per request


def build() -> tuple[Path, Path]:
    """Builds both servers as they are released; gives back the webhook's and the baseline's path."""
    command = ["cargo", "build", "--profile", "dist", "--locked", "--bin", "gmsa-webhook", "--bench", "baseline"]
    output = subprocess.run(
        [*command, "--message-format=json-render-diagnostics"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    ).stdout
    built = {}
    for line in output.splitlines():
        message = json.loads(line)
        if message.get("executable"):
            built[message["target"]["name"]] = Path(message["executable"])
    return built["gmsa-webhook"], built["baseline"]


def free_address() -> str:
    """A loopback address without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@contextlib.contextmanager
def running(name: str, command: list, address: str, ready: bytes, log: Path):
    """Runs a server until the block ends, from when it answers a review on."""
    # What the environment may set is fixed here; the rest are the defaults that a user gets.
    settings = ("TLS_CRT", "TLS_KEY", "HTTPS_PORT", "LOG_LEVEL", "LOG_FORMAT", "RANDOM_HOSTNAME", "RUST_LOG")
    environment = {key: value for key, value in os.environ.items() if key not in settings}
    with log.open("wb") as output, subprocess.Popen(command, stderr=output, cwd=ROOT, env=environment) as process:
        server = Server(name, process, address)
        try:
            until = time.monotonic() + START_LIMIT
            while True:
                try:
                    server.post("/mutate", ready)
                    break
                except (urllib.error.URLError, ConnectionError) as error:
                    if process.poll() is not None or time.monotonic() > until:
                        raise Failure(f"{name} does not answer ({error}); it logged:\n{log.read_text()}") from error
                    time.sleep(0.05)
            yield server
        finally:
            process.terminate()


def compact(source: Path) -> bytes:
    """A captured review as an API server sends it: without white space."""
    return json.dumps(json.loads(source.read_bytes()), separators=(",", ":"), ensure_ascii=False).encode()


def with_contents(review: bytes, patch: list) -> bytes:
    """The review of a pod after the mutating webhook's patch: all of its operations add a member to an object."""
    document = json.loads(review)
    for operation in patch:
        *parents, last = operation["path"].split("/")[1:]
        place = document["request"]["object"]
        for key in parents:
            place = place[int(key)] if isinstance(place, list) else place[key]
        place[last] = operation["value"]
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def cases(baseline: Server, webhook: Server, folder: Path) -> list[Case]:
    """Prepares the bodies, and makes sure that what is going to be measured is the right answer."""

    def answered(server: Server, path: str, body: bytes, patched: bool) -> dict:
        answer = server.post(path, body)
        if not answer["allowed"] or ("patch" in answer) != patched:
            raise Failure(f"{server.name} {path}: not the answer to be measured: {answer}")
        return answer

    def stored(name: str, body: bytes) -> Path:
        (folder / name).write_bytes(body)
        return folder / name

    mutate = compact(INPUTS / "pod-with-gmsa.mutate.json")
    plain = compact(INPUTS / "pod-without-gmsa.mutate.json")
    patch = json.loads(base64.b64decode(answered(webhook, "/mutate", mutate, patched=True)["patch"]))
    validate = with_contents(compact(INPUTS / "pod-with-gmsa.validate.json"), patch)
    answered(webhook, "/validate", validate, patched=False)
    answered(webhook, "/mutate", plain, patched=False)
    for path, body in [("/mutate", mutate), ("/validate", validate), ("/mutate", plain)]:
        answered(baseline, path, body, patched=False)
    return [
        Case("mutate, GMSA pod", "/mutate", stored("mutate.json", mutate), 1.6),
        Case("validate, GMSA pod", "/validate", stored("validate.json", validate), 1.6),
        Case("mutate, pod without GMSA", "/mutate", stored("plain.json", plain), 1.3),
    ]


def until(holds, failure: str) -> None:
    """Waits until something holds."""
    deadline = time.monotonic() + START_LIMIT
    while not holds():
        if time.monotonic() > deadline:
            raise Failure(failure)
        time.sleep(0.05)


def measure(case: Case, server: Server, seconds: float, connections: int = CONNECTIONS, timeout: str = "2s") -> Sample:
    """Runs wrk once."""
    threads = max(1, len(os.sched_getaffinity(0)) // 2)
    url = f"https://{server.address}{case.path}?timeout=10s"
    command = ["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds:g}s", "--timeout", timeout, "-s", INPUTS / "post.lua", url, "--", case.body]
    before = server.cpu_seconds()
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=seconds + 90).stdout
    spent = server.cpu_seconds() - before
    result = json.loads(output.splitlines()[-1])
    if result["errors"] or not result["requests"]:
        raise Failure(f"{server.name}, {case.name}: {result['errors']} of {result['requests']} requests failed")
    return Sample(
        rate=result["requests"] / result["seconds"],
        p50=result["p50_us"] / 1e3,
        p99=result["p99_us"] / 1e3,
        cpu=spent * 1e6 / result["requests"],
    )


def table(samples: dict[Case, list[dict[str, Sample]]]) -> list[str]:
    """The rows: what a review costs on the baseline, and what the same review costs here; a ratio is taken within its round."""
    lines = [
        "| | requests/s | p50, ms | p99, ms | CPU per request, µs | CPU ÷ baseline | p99 ÷ baseline | requests/s ÷ baseline |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case, rounds in samples.items():
        for name in SERVERS:
            runs = [run[name] for run in rounds]
            baselines = [run[BASELINE] for run in rounds]

            def ratio(of: str, runs: list[Sample] = runs, baselines: list[Sample] = baselines) -> str:
                return spread([getattr(run, of) / getattr(baseline, of) for run, baseline in zip(runs, baselines, strict=True)], 2)

            row = [
                f"{case.name}: {name}",
                spread([run.rate for run in runs], 0),
                spread([run.p50 for run in runs], 2),
                spread([run.p99 for run in runs], 2),
                spread([run.cpu for run in runs], 1),
            ]
            row += ["1"] * 3 if name == BASELINE else [f"{ratio('cpu')}, aim {case.cpu_aim}", ratio("p99"), ratio("rate")]
            lines.append(f"| {' | '.join(row)} |")
    return lines


def run(rounds: int, seconds: float) -> str:
    """The whole benchmark; gives back its report."""
    webhook_binary, baseline_binary = build()
    ready = compact(INPUTS / "pod-without-gmsa.mutate.json")
    baseline_address, webhook_address = free_address(), free_address()
    serve = ["serve", "--standalone", INPUTS / "cluster", "--listen", webhook_address, "--admin-listen", free_address()]
    with (
        tempfile.TemporaryDirectory(prefix="gmsa-bench-") as name,
        running(BASELINE, [baseline_binary, baseline_address], baseline_address, ready, Path(name, "baseline.log")) as baseline,
        running(WEBHOOK, [webhook_binary, *serve], webhook_address, ready, Path(name, "webhook.log")) as webhook,
    ):
        servers = (baseline, webhook)
        idle = {server.name: server.resident_mib() for server in servers}
        all_cases = cases(baseline, webhook, Path(name))
        sizes = ", ".join(f"{case.name}: {case.body.stat().st_size:,}" for case in all_cases)
        samples: dict[Case, list[dict[str, Sample]]] = {case: [] for case in all_cases}
        for case in all_cases:
            for server in servers:
                measure(case, server, 1)
        for number in range(1, rounds + 1):
            for case in all_cases:
                runs = {server.name: measure(case, server, seconds) for server in servers}
                samples[case].append(runs)
                print(f"round {number}: {case.name}: {runs}", file=sys.stderr)
        loaded = {server.name: server.resident_mib() for server in servers}
    memory = "; ".join(f"{name} {idle[name]:.1f} MiB idle, {loaded[name]:.1f} MiB after the rounds" for name in idle)
    return "\n".join(
        [
            *table(samples),
            "",
            f"Median (smallest–largest) of {rounds} interleaved rounds of {seconds:g} s each, {CONNECTIONS} connections, wrk on",
            "the same machine; both servers are posted the same review, and a ratio is taken within its round. The webhook",
            "runs standalone, its log goes to a file.",
            "",
            f"- Machine: {machine()}.",
            f"- Resident memory: {memory}.",
            f"- Bytes of a request body: {sizes}.",
        ]
    )


def main() -> int:
    """Exit code 0 where it measured, 2 where it could not."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default 5)")
    parser.add_argument("--seconds", type=float, default=5, help="length of one run of wrk (default 5)")
    parser.add_argument("--write", action="store_true", help=f"also write the table into {PAGE.relative_to(ROOT)}")
    parser.add_argument("--against", metavar="BINARY", help="measure another webhook beside this one, live against one control plane")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="with --against: the environment that its chart gives it")
    parser.add_argument("--growth", action="store_true", help="measure what a review costs as everything around it grows")
    parser.add_argument("--webhook", metavar="BINARY", type=Path, help="with --against or --growth: this webhook, if it is built already")
    parser.add_argument("--specs", type=int, default=50_000, help="with --growth: the most credential specs (default 50,000)")
    arguments = parser.parse_args()
    try:
        if arguments.against or arguments.growth:
            importlib.import_module("against" if arguments.against else "growth").main(arguments)
            return 0
        report = run(arguments.rounds, arguments.seconds)
        print(report)
        if arguments.write:
            write(report, BEGIN, END)
    except (Failure, OSError, subprocess.SubprocessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
