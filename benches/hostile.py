#!/usr/bin/env python3
"""Measures how much clients that mean no good delay the reviews of those that do.

In turn, round after round: quiet, and with a thousand half-open connections and garbage on the port, in processes of their
own. Good reviews are posted one after the other, each on a connection of its own or all on one, and timed by the client.
Rounds are short and many, and the median of them counts, so that what else the machine does matters little. Prints a Markdown
table; with --write puts it into docs/performance.md too.

Needs Linux, cargo and Python's standard library, and room for 2,500 open files.
"""

import argparse
import contextlib
import http.client
import multiprocessing
import random
import resource
import select
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import floor
from report import PAGE, ROOT, Failure, machine, spread, write

BEGIN, END = "<!-- hostile: written by `just bench-hostile --write` -->", "<!-- hostile: end -->"
HALF_OPEN = 1000
GARBAGE_PER_SECOND = 50
OPEN_FILES = 2500
# Reviews that are not measured: what went on before has come to its end then.
WARM_UP = 20
AIM = 2.0
# A record header that announces more than comes: the server waits for the rest.
HALF_A_HELLO = bytes([22, 3, 1, 0, 200, 1, 0])


def half_open(host: str, port: int, ready) -> None:
    """Keeps half-open connections until it is killed; one that the server closes is replaced."""
    connections = {}
    poll = select.poll()
    while True:
        while len(connections) < HALF_OPEN:
            connection = socket.create_connection((host, port))
            if len(connections) % 2:
                connection.send(HALF_A_HELLO)
            connections[connection.fileno()] = connection
            poll.register(connection, select.POLLIN | select.POLLHUP)
        ready.set()
        for descriptor, _ in poll.poll(1000):
            poll.unregister(descriptor)
            connections.pop(descriptor).close()


def garbage(host: str, port: int) -> None:
    """Sends random bytes to connection after connection until it is killed."""
    while True:
        with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1) as connection:
            connection.send(random.randbytes(random.randrange(1, 4096)))
        time.sleep(1 / GARBAGE_PER_SECOND)


@contextlib.contextmanager
def hostile(host: str, port: int):
    """Clients that mean no good, until the block ends."""
    ready = multiprocessing.Event()
    processes = [
        multiprocessing.Process(target=half_open, args=(host, port, ready), daemon=True),
        multiprocessing.Process(target=garbage, args=(host, port), daemon=True),
    ]
    for process in processes:
        process.start()
    try:
        if not ready.wait(30):
            raise Failure("the half-open connections could not be opened: is there room for as many open files?")
        yield
    finally:
        for process in processes:
            process.terminate()
            process.join()


def connection(host: str, port: int) -> http.client.HTTPSConnection:
    """A connection that trusts whatever it is shown: the certificate was made a moment ago on this machine."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, timeout=5, context=context)


def post(client: http.client.HTTPSConnection, body: bytes) -> None:
    """Posts one review."""
    client.request("POST", "/mutate?timeout=10s", body, {"Content-Type": "application/json"})
    answer = client.getresponse()
    answer.read()
    if answer.status != 200:
        raise Failure(f"a good review was answered with {answer.status}")


def times(host: str, port: int, body: bytes, reviews: int, new: bool) -> list[float]:
    """Milliseconds of each of so many reviews."""
    taken = []
    client = connection(host, port)
    for _ in range(WARM_UP + reviews):
        if new:
            client.close()
        begun = time.perf_counter()
        post(client, body)
        taken.append((time.perf_counter() - begun) * 1e3)
    client.close()
    return taken[WARM_UP:]


def percentile(values: list[float], percent: int) -> float:
    """The value that so many hundredths do not exceed."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def run(rounds: int, reviews: int, binary: Path | None) -> str:
    """The whole benchmark; gives back its report."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(OPEN_FILES, hard)), hard))
    binary = binary or floor.build()[0]
    body = floor.compact(floor.INPUTS / "pod-with-gmsa.mutate.json")
    address = floor.free_address()
    host, _, port = address.partition(":")
    target = (host, int(port))
    serve = [binary, "serve", "--standalone", floor.INPUTS / "cluster", "--listen", address]
    serve += ["--admin-listen", floor.free_address()]
    kinds = {"a connection of its own": True, "one connection for all": False}
    # Of each round: p50 and p99.
    samples = {(kind, place): [] for kind in kinds for place in ("quiet", "hostile")}

    def measure(place: str) -> None:
        for kind, new in kinds.items():
            taken = times(*target, body, reviews, new)
            p50, p99 = percentile(taken, 50), percentile(taken, 99)
            samples[kind, place].append((p50, p99))
            print(f"{place}: {kind}: p50 {p50:.2f} ms, p99 {p99:.2f} ms", file=sys.stderr)

    with (
        tempfile.TemporaryDirectory(prefix="gmsa-bench-") as name,
        floor.running("webhook", serve, address, body, Path(name, "webhook.log")),
    ):
        for _ in range(rounds):
            measure("quiet")
            with hostile(*target):
                measure("hostile")
    lines = ["| reviews on | p50 quiet, ms | p50 hostile, ms | p99 quiet, ms | p99 hostile, ms | p99 hostile ÷ quiet |"]
    lines.append("|---|---|---|---|---|---|")
    for kind in kinds:
        quiet, loud = samples[kind, "quiet"], samples[kind, "hostile"]
        cells = [spread([run[at] for run in runs], 2) for at in (0, 1) for runs in (quiet, loud)]
        ratio = statistics.median(run[1] for run in loud) / statistics.median(run[1] for run in quiet)
        lines.append(f"| {' | '.join([kind, *cells, f'{ratio:.2f}, aim {AIM:g}'])} |")
    lines += [
        "",
        f"Median (smallest–largest) of {rounds} rounds of {reviews:,} reviews each. Hostile: {HALF_OPEN:,} half-open connections, half of",
        f"them with half a ClientHello, and {GARBAGE_PER_SECOND} connections a second with garbage.",
        "",
        f"- Machine: {machine()}.",
    ]
    return "\n".join(lines)


def main() -> int:
    """Exit code 0 where it measured, 2 where it could not."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20, help="rounds (default 20)")
    parser.add_argument("--reviews", type=int, default=500, help="reviews of each kind in a round (default 500)")
    parser.add_argument("--binary", type=Path, help="a released gmsa-webhook to measure, instead of building one")
    parser.add_argument("--write", action="store_true", help=f"also write the table into {PAGE.relative_to(ROOT)}")
    arguments = parser.parse_args()
    try:
        report = run(arguments.rounds, arguments.reviews, arguments.binary)
        print(report)
        if arguments.write:
            write(report, BEGIN, END)
    except (Failure, OSError, subprocess.SubprocessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
