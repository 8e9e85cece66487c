"""`whenidle export`, `import` and `check`: sessions as text, and the soundness of a store."""

import io
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, Annotated

import trio
from cyclopts import Parameter

from whenidle.cli.arguments import DEFAULT_STORE, Json, Session, Store, existing_store
from whenidle.cli.exits import Exit
from whenidle.cli.output import Output
from whenidle.cli.text import safe_json, visible
from whenidle.cli.tokens import STDIN_MARK
from whenidle_actors.session import check_session_id, fold, index_of
from whenidle_actors.stores.base import IDLE_INDEX, Role, SessionHeader, SessionIndex, SessionSlice
from whenidle_actors.stores.jsonl import export_lines, import_lines, import_session
from whenidle_actors.stores.sqlite import SqliteStore
from whenidle_protocol import EventRecord


def export(
    session: Session,
    /,
    *,
    output: Annotated[
        str,
        Parameter(
            name=("--output", "-o"), metavar="FILE", show_default=False, help="The file to write; - is standard output."
        ),
    ] = STDIN_MARK,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Write a session as JSON Lines: its header, then one event a line."""
    trio.run(_export, session, output, store, Output.standard(json=json))


def import_(
    file: Annotated[str, Parameter(help="A file that export wrote; - is standard input.")],
    /,
    *,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Add an exported session to a store, all of it or nothing; one of that id must not exist yet."""
    trio.run(_import, file, store, Output.standard(json=json))


def check(*, store: Store = DEFAULT_STORE, json: Json = False) -> Exit:
    """Look through a whole store for damage and change nothing; the exit status is 3 if there is any."""
    return trio.run(_check, store, Output.standard(json=json))


async def _export(session: str, target: str, path: str, output: Output) -> None:
    check_session_id(session)
    async with SqliteStore(existing_store(path)).opened(Role.MANAGER) as store:
        whole = await store.read(session)
    lines = list(export_lines(whole))
    if target == STDIN_MARK:
        sys.stdout.buffer.writelines(map(_for_a_terminal, lines) if sys.stdout.isatty() else lines)
        return
    await trio.to_thread.run_sync(_write, Path(target), lines)
    document = {"session": session, "events": whole.length, "file": target}
    output.answer(document, f"wrote the {whole.length} events of {session} to {visible(target)}")


def _for_a_terminal(line: bytes) -> bytes:
    """Return a line of an export as a terminal may have it: it still means the same."""
    text = line.decode().removesuffix("\n")
    return f"{safe_json(text)}\n".encode()


def _write(target: Path, lines: list[bytes]) -> None:
    """Write all of it or nothing; a pipe or a device is written to as it is."""
    if target.exists() and not target.is_file():
        with target.open("wb") as stream:
            stream.writelines(lines)
        return
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as stream:
            stream.writelines(lines)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


async def _import(file: str, path: str, output: Output) -> None:
    name = "standard input" if file == STDIN_MARK else file
    with _opened(file) as stream:
        content = stream
        if not await trio.Path(path).exists():
            # A file that cannot be imported must not leave an empty store behind.
            content = await trio.to_thread.run_sync(_checked, stream, name)
        async with SqliteStore(path).opened(Role.MANAGER) as store:
            header = await import_session(store, content, file=name, validate=_validate)
            length = (await store.read(header.id)).length
    document = {"session": header.id, "events": length}
    output.answer(document, f"imported {visible(header.id)} with {length} events")


def _opened(file: str) -> AbstractContextManager[IO[bytes]]:
    """Open a file to be read line by line, since it may be endless."""
    return nullcontext(sys.stdin.buffer) if file == STDIN_MARK else Path(file).open("rb")


def _checked(stream: IO[bytes], name: str) -> IO[bytes]:
    """Return what a stream holds, to be read once more, if it is an exported session."""
    header, records = import_lines(stream, name)
    return io.BytesIO(b"".join(export_lines(SessionSlice(header, IDLE_INDEX, 0, records))))


def _validate(header: SessionHeader, records: Sequence[EventRecord]) -> SessionIndex:
    check_session_id(header.id)
    return index_of(fold(header, records))


async def _check(path: str, output: Output) -> Exit:
    async with SqliteStore(existing_store(path)).opened(Role.MANAGER) as store:
        faults = [*await store.check()]
    if not faults:
        output.answer({"store": path, "sound": True, "faults": []}, f"{visible(path)} is sound")
        return Exit.OK
    output.answer({"store": path, "sound": False, "faults": faults}, *map(visible, faults))
    return Exit.STORE
