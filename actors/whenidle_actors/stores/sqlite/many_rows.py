"""One statement for many rows.

Each step of a statement gives the interpreter up and has to get it back. While the host computes, that can
take milliseconds, so what is written for a hundred sessions at once is handed to SQLite in a few steps and
not in a few hundred.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

GIVEN: Final = "<given>"
"""Stands in a statement for the rows: a table whose columns are `column1`, `column2` and so on."""

_MOST_ROWS: Final = 256
"""Rows of one statement: some 2,000 parameters, and SQLite takes 32,766."""


def change_many(connection: sqlite3.Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> int:
    """Run a statement with `rows` in the place of `GIVEN`, in several parts if need be; return how many rows changed.

    The statement begins with INSERT or UPDATE, and the rows are its only parameters.

    Raises:
        sqlite3.Error, UnicodeError, OverflowError: the caller must undo what was written.
    """
    return sum(connection.execute(*each).rowcount for each in _parts(statement, rows, ()))


def change_each(connection: sqlite3.Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> int:
    """Run a statement once for each of `rows`; return how many rows changed. Raises like `change_many`."""
    return connection.executemany(statement, rows).rowcount if rows else 0


def select_many(
    connection: sqlite3.Connection, statement: str, rows: Sequence[tuple[Any, ...]], *rest: Any
) -> list[Any]:
    """Return what a query finds with `rows` in the place of `GIVEN`; the parameters `rest` stand behind them.

    Raises:
        sqlite3.Error, UnicodeError, OverflowError: it cannot be read.
    """
    return [found for each in _parts(statement, rows, rest) for found in connection.execute(*each)]


def _parts(statement: str, rows: Sequence[tuple[Any, ...]], rest: tuple[Any, ...]) -> Iterator[tuple[str, list[Any]]]:
    start = 0
    while start < len(rows):
        # A power of two, so that there are few statements and the connection remembers all of them.
        count = min(_MOST_ROWS, 1 << (len(rows) - start).bit_length() - 1)
        parameters = [value for row in rows[start : start + count] for value in row]
        yield _with_rows(statement, count, len(rows[start])), [*parameters, *rest]
        start += count


@functools.lru_cache(maxsize=128)
def _with_rows(statement: str, count: int, width: int) -> str:
    row = f"({', '.join('?' * width)})"
    return statement.replace(GIVEN, f"(VALUES {', '.join([row] * count)})")
