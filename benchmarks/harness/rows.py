"""One comparison as a row: what ours does, what a peer does, and their ratio."""

from __future__ import annotations

from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]
"""`name`; `ours` and `peer` in `unit`; `ratio`, above 1 where ours is better; and `peer_name`."""


def rate_row(name: str, ours: float, peer: float, unit: str, peer_name: str) -> Row:
    """Return a row of which more is better."""
    return _row(name, ours, peer, ours / peer, unit, peer_name)


def cost_row(name: str, ours: float, peer: float, unit: str, peer_name: str) -> Row:
    """Return a row of which less is better."""
    return _row(name, ours, peer, peer / ours, unit, peer_name)


def _row(name: str, ours: float, peer: float, ratio: float, unit: str, peer_name: str) -> Row:  # noqa: PLR0913, PLR0917 - its columns
    return {"name": name, "ours": ours, "peer": peer, "ratio": ratio, "unit": unit, "peer_name": peer_name}
