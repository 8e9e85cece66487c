"""Rows as people and as programs read them."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.harness.rows import Row

_MET = {None: "", True: "yes", False: "[bold red]no[/]"}


def machine() -> dict[str, Any]:
    """Return what the numbers depend on."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "sqlite": sqlite3.sqlite_version,
    }


def print_json(rows: Sequence[Row], skipped: Sequence[str], scale: float) -> None:
    """Print one JSON object: `machine`, `scale`, `rows` and `skipped`."""
    print(json.dumps({"machine": machine(), "scale": scale, "rows": rows, "skipped": skipped}, indent=2))


def print_table(rows: Sequence[Row], skipped: Sequence[str], scale: float) -> None:
    """Print a table, as wide as it needs to be where nobody looks at a terminal."""
    facts = machine()
    table = Table(title=", ".join(f"{name} {value}" for name, value in facts.items()), title_justify="left")
    table.add_column("what", overflow="fold")
    for column in ("ours", "peer"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    table.add_column("peer is", overflow="fold")
    table.add_column("ratio", justify="right", no_wrap=True)
    table.add_column("floor", no_wrap=True)
    table.add_column("met", no_wrap=True)
    for row in rows:
        table.add_row(
            row["name"],
            _number(row["ours"]),
            _number(row["peer"]),
            row["unit"],
            row["peer_name"],
            f"{row['ratio']:.2f}",
            row["floor"] or "",
            _MET[row["met"]],
        )
    console = Console()
    if not console.is_terminal:
        console.width = 160
    console.print(table)
    for what in skipped:
        console.print(f"skipped: {what}", markup=False)
    if scale != 1:
        console.print(f"scale {scale:g}: floors are meant for scale 1", markup=False)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
