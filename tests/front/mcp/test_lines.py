"""Lines of whatever a client sends."""

from __future__ import annotations

import trio
from hypothesis import given
from hypothesis import strategies as st

from whenidle.mcp.lines import Lines, LineTooLong

LIMIT = 10


async def read(chunks: list[bytes], longest: int = LIMIT) -> list[bytes | None]:
    """Return the lines of a stream that comes in these pieces; None for one that was too long."""
    left = iter([*chunks, b""])

    async def receive(_: int) -> bytes:
        await trio.lowlevel.checkpoint()
        return next(left, b"")

    lines = Lines(receive, longest)
    read: list[bytes | None] = []
    while True:
        try:
            line = await lines.next()
        except LineTooLong:
            read.append(None)
            continue
        if line is None:
            return read
        read.append(line)


async def test_a_line_ends_at_its_end() -> None:
    """Pieces of a stream are no lines; the last line need not end."""
    assert await read([b"a\nbc"]) == [b"a", b"bc"]
    assert await read([b"a\nbc", b"d\n\ne"]) == [b"a", b"bcd", b"", b"e"]
    assert await read([]) == []


async def test_a_line_that_is_too_long_is_passed_over() -> None:
    """It is told once, however long it is and wherever it is cut; the next one can be read."""
    assert await read([b"0123456789\n", b"0123456789a\n", b"b\n"]) == [b"0123456789", None, b"b"]
    assert await read([b"x" * 25, b"x" * 100, b"\nb"]) == [None, b"b"]
    assert await read([b"x" * 25]) == [None]


@given(st.lists(st.binary(max_size=30)))
def test_any_pieces_give_the_lines_that_the_whole_has(chunks: list[bytes]) -> None:
    """How a stream is cut makes no difference, and nothing longer than the limit comes out."""
    chunks = [chunk for chunk in chunks if chunk]
    whole = b"".join(chunks).split(b"\n")
    if not whole[-1]:
        whole.pop()
    expected = [line if len(line) <= LIMIT else None for line in whole]
    assert trio.run(read, chunks) == expected
