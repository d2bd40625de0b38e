"""What the benchmarks share: how figures and the machine are written down, and where in docs/measurements.md."""

import json
import os
import platform
import re
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "measurements.md"
RECORDED = ROOT / "target"


class Failure(Exception):
    """The benchmark cannot go on; the text says why."""


def spread(values: list[float], digits: int) -> str:
    """The median, with the smallest and the largest."""
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"


def machine() -> str:
    """What it ran on."""
    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    memory = int(re.search(r"^MemTotal:\s+(\d+) kB$", Path("/proc/meminfo").read_text(encoding="ascii"), re.MULTILINE)[1])
    rustc = subprocess.run(["rustc", "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout.split()[1]
    cores = len(os.sched_getaffinity(0))
    model = cpu[1] if cpu else platform.machine()
    return f"{cores} cores ({model}), {memory / 2**20:.0f} GiB of memory, Linux {platform.release()}, Rust {rustc}"


def record(name: str, figures: object) -> None:
    """Keeps figures in a file for `plots.py`."""
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / name).write_text(json.dumps(figures), encoding="utf-8")


def write(report: str, begin: str, end: str) -> None:
    """Puts the report between its two marks on the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, found_begin, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise Failure(f"{PAGE} has no place for the table: {begin} … {end}")
    PAGE.write_text(f"{before}{begin}\n\n{report}\n\n{end}{after}", encoding="utf-8")
