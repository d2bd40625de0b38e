#!/usr/bin/env python3
"""Draws what the benchmarks and the soak test recorded in target/, as SVG for the documentation: python3 benches/plots.py.

Needs matplotlib. What was not recorded is not drawn.
"""

import json
import sys

from report import RECORDED, ROOT

# One grey is readable on white and on black; the page gives the background.
INK, COLOURS = "#7d8590", ("#3f8fd2", "#d29922", "#9a6dd7")
ASSETS = ROOT / "docs" / "assets"


def figure(plt, rows: int = 1):
    """Axes in the colours that both backgrounds bear."""
    plt.rcParams.update({"svg.fonttype": "none", "font.family": "sans-serif", "svg.hashsalt": "gmsa"})
    for part in ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor", "grid.color"):
        plt.rcParams[part] = INK
    drawn, axes = plt.subplots(rows, 1, figsize=(8, 1 + 2.4 * rows), sharex=rows > 1, layout="constrained")
    for axis in axes if rows > 1 else [axes]:
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    return drawn, axes


def from_zero(axis) -> None:
    """The axis begins at zero, and the largest value has room above it."""
    axis.set_ylim(0, 1.1 * axis.dataLim.ymax)


def save(drawn, name: str) -> None:
    """Writes the file; the same figures make the same bytes."""
    ASSETS.mkdir(exist_ok=True)
    drawn.savefig(ASSETS / name, transparent=True, metadata={"Date": None})
    print(ASSETS / name)


def by_webhook(plt, figures: dict, field: str, label: str, name: str) -> None:
    """A point for each webhook and review: on a logarithmic scale the length of a bar would mean nothing."""
    drawn, axis = figure(plt)
    webhooks = list(next(iter(figures.values())))
    for at, webhook in enumerate(webhooks):
        places = [case + (at - 1) * 0.27 for case in range(len(figures))]
        values = [figures[case][webhook][field] for case in figures]
        axis.plot(places, values, "o", markersize=9, label=webhook, color=COLOURS[at])
        for place, value in zip(places, values, strict=True):
            text = f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"
            axis.annotate(text, (place, value), (0, 8), textcoords="offset points", ha="center", color=INK, fontsize=8)
    axis.set_yscale("log")
    axis.margins(0.1, 0.15)
    axis.set_xticks(range(len(figures)), list(figures))
    axis.set_ylabel(label)
    axis.legend(frameon=False, fontsize=8, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
    save(drawn, name)


def growth(plt, figures: list) -> None:
    """CPU per review from a few credential specs to many."""
    rows = [(row["what"].split(" ")[0].replace(",", ""), row) for row in figures if row["what"].endswith("credential specs")]
    drawn, (cpu, memory) = figure(plt, 2)
    specs = [int(number) for number, _ in rows]
    cpu.plot(specs, [row["cpu"] for _, row in rows], marker="o", color=COLOURS[0])
    memory.plot(specs, [row["resident"] for _, row in rows], marker="o", color=COLOURS[0])
    for axis in (cpu, memory):
        from_zero(axis)
    memory.set_xscale("log")
    cpu.set_ylabel("CPU per review, µs")
    memory.set_ylabel("resident, MiB")
    memory.set_xlabel("credential specs in the cluster")
    save(drawn, "credential-specs.svg")


def soak(plt, recorded: dict) -> None:
    """Memory, file descriptors and p99 over time; what happened is marked."""
    samples = recorded["samples"]
    minutes = [sample["seconds"] / 60 for sample in samples]
    drawn, axes = figure(plt, 3)
    for at, which in enumerate(("first replica", "second replica")):
        for axis, field in ((axes[0], "resident_mib"), (axes[1], "open_files")):
            axis.plot(minutes, [sample["replicas"][at][field] for sample in samples], color=COLOURS[at], label=which)
    axes[2].plot(minutes, [sample["p99_ms"] for sample in samples], color=COLOURS[2])
    for sample, minute in zip(samples, minutes, strict=True):
        for axis in axes if sample["event"] else []:
            axis.axvline(minute, color=INK, linestyle=":" if sample["event"] == "Rotation" else "--")
    for axis, label in zip(axes, ("resident, MiB", "file descriptors", "p99, ms"), strict=True):
        axis.set_ylabel(label)
        from_zero(axis)
    axes[0].legend(frameon=False, fontsize=8, ncols=2)
    axes[2].set_xlabel("minutes; dotted: the CA is rotated, dashed: the API server is killed and restarted")
    save(drawn, "soak.svg")


def main() -> int:
    """Exit code 0 where all that was recorded is drawn, 2 where it cannot be."""
    try:
        import matplotlib
    except ImportError:
        print("error: no matplotlib: pip install matplotlib", file=sys.stderr)
        return 2
    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    read = lambda name: json.loads((RECORDED / name).read_text()) if (RECORDED / name).exists() else None  # noqa: E731
    if figures := read("against.json"):
        by_webhook(plt, figures, "cpu", "CPU per review, µs", "cpu-by-webhook.svg")
        by_webhook(plt, figures, "p99", "p99, ms", "p99-by-webhook.svg")
    if figures := read("growth.json"):
        growth(plt, figures)
    if recorded := read("soak.json"):
        soak(plt, recorded)
    return 0


if __name__ == "__main__":
    sys.exit(main())
