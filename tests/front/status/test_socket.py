"""The socket beside a store: who may ask, what is in its way, and what it must bear."""

from __future__ import annotations

import json
import os
import socket
import stat
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
import trio

from whenidle import MemoryStore, open_host
from whenidle.status import NoHost, ask_status, serve_status
from whenidle.status.socket import SUFFIX

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from whenidle import Host, Store, Turn


async def nothing(_: Turn) -> None:
    """Be a turn function."""


@asynccontextmanager
async def served(store: Store | Path) -> AsyncIterator[tuple[Host, bool]]:
    """Run a host that tells what it does, and say whether it does."""
    async with open_host(store=store, turn=nothing) as host, trio.open_nursery() as nursery:
        told = await nursery.start(serve_status, host)
        yield host, told
        nursery.cancel_scope.cancel()


def beside(store: Path) -> Path:
    """Return where the socket of a store is."""
    return store.with_name(store.name + SUFFIX)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return where the test's store is."""
    return tmp_path / "a.db"


async def test_a_host_tells_what_it_does(store: Path) -> None:
    """Whoever asks gets a view of this moment, again and again, also at once."""
    async with served(store) as (host, told):
        await host.create_agent("ada")
        views = [await ask_status(store) for _ in range(3)]
        async with trio.open_nursery() as nursery:
            for _ in range(30):
                nursery.start_soon(ask_status, store)
    assert told
    assert {(view.pid, view.agent_count, view.agents[0].session) for view in views} == {(os.getpid(), 1, "ada")}


async def test_only_the_user_of_the_host_may_ask(store: Path) -> None:
    """The socket is for its owner alone, and nothing else is left in the folder."""
    async with served(store):
        mode = beside(store).lstat().st_mode
        others = [path.name for path in store.parent.iterdir() if stat.S_ISSOCK(path.lstat().st_mode)]
    assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
    assert others == [beside(store).name]


async def test_a_host_that_has_stopped_leaves_nothing(store: Path) -> None:
    """The socket goes with its host, and then nobody answers."""
    async with served(store):
        pass
    assert not beside(store).exists()
    with pytest.raises(NoHost):
        await ask_status(store)


async def test_what_a_crash_left_behind_is_replaced(store: Path) -> None:
    """A socket that nobody listens at answers nobody, and is in no later host's way."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(beside(store)))
    with pytest.raises(NoHost):
        await ask_status(store)
    async with served(store) as (_, told):
        assert told
        assert (await ask_status(store)).pid == os.getpid()


async def test_a_file_in_its_place_is_left_alone(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What is no socket is somebody's; the host runs without telling, and says why."""
    beside(store).write_text("mine")
    async with served(store) as (host, told):
        assert not told
        await host.create_agent("ada")
    assert beside(store).read_text() == "mine"
    assert "is in the way and is no socket" in caplog.text


@pytest.mark.parametrize("depth", [1, 3])
async def test_a_long_path_is_no_hindrance(tmp_path: Path, depth: int) -> None:
    """An address of a socket has 107 bytes; a folder of any depth can be reached all the same."""
    folder = tmp_path.joinpath(*["d" * 120] * depth)
    folder.mkdir(parents=True)
    async with served(folder / "a.db") as (_, told):
        assert told
        assert (await ask_status(folder / "a.db")).pid == os.getpid()
        assert stat.S_ISSOCK(beside(folder / "a.db").lstat().st_mode)
    assert not beside(folder / "a.db").exists()


@pytest.mark.parametrize("length", range(97, 109))
async def test_a_path_of_just_the_longest_length_is_none_either(tmp_path: Path, length: int) -> None:
    """Also where the address fits and the name under which the socket is made would not."""
    folder = tmp_path / ("d" * (length - len(os.fsencode(tmp_path)) - len(f"//a.db{SUFFIX}")))
    folder.mkdir()
    assert len(os.fsencode(beside(folder / "a.db"))) == length
    async with served(folder / "a.db") as (_, told):
        assert told
        assert (await ask_status(folder / "a.db")).pid == os.getpid()
        assert [path.name for path in folder.iterdir() if path.is_socket()] == [f"a.db{SUFFIX}"]


async def test_a_name_that_is_too_long_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The host runs, and whoever asks is told that none answers."""
    path = tmp_path / ("n" * 200)
    async with served(path) as (_, told):
        assert not told
        with pytest.raises(NoHost, match="too long"):
            await ask_status(path)
    assert "too long" in caplog.text


async def test_a_store_by_another_name_is_the_same(store: Path, tmp_path: Path) -> None:
    """A link to the store leads to its socket."""
    link = tmp_path / "link.db"
    link.symlink_to(store)
    async with served(store):
        assert (await ask_status(link)).pid == os.getpid()


async def test_a_store_that_is_no_file_has_no_socket(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody in another process could have meant it."""
    async with served(MemoryStore()) as (_, told):
        assert not told
    assert "the store is no file: memory" in caplog.text


async def test_clients_that_hang_up_or_say_nothing_harm_nobody(store: Path) -> None:
    """One that is gone before the answer, and many that never read, keep nobody else from an answer."""
    async with served(store):
        held = list[Any]()
        for number in range(40):
            client = await trio.open_unix_socket(str(beside(store)))
            if number % 2:
                await client.aclose()
            else:
                held.append(client)
        assert (await ask_status(store)).pid == os.getpid()
        for client in held:
            await client.aclose()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "is no host"),
        (b"[]", "is no host"),
        (b"{}", "is no host"),
        (b"[" * 100_000, "is no host"),
        (b'{"store": 1, "now": "yesterday"}', "is no host"),
        (b"\xff\xfe", "is no host"),
        (b"x" * (5 * 1024 * 1024), "says too much"),
    ],
)
async def test_an_answer_that_is_none_is_no_host(store: Path, answer: bytes, why: str) -> None:
    """Whatever listens there, the one who asks gets an exception of its own, and no more memory is used."""
    with socket.socket(socket.AF_UNIX) as impostor:
        impostor.bind(str(beside(store)))
        impostor.listen()

        async def serve(stream: trio.SocketStream) -> None:
            async with stream:
                with suppress(trio.BrokenResourceError):
                    await stream.send_all(answer)

        async with trio.open_nursery() as nursery:
            listener = trio.SocketListener(trio.socket.from_stdlib_socket(impostor))
            nursery.start_soon(trio.serve_listeners, serve, [listener])
            with pytest.raises(NoHost, match=why):
                await ask_status(store)
            nursery.cancel_scope.cancel()


async def test_one_that_never_answers_is_given_up(store: Path, autojump_clock: trio.testing.MockClock) -> None:
    """Whoever asks waits some seconds and no longer."""
    with socket.socket(socket.AF_UNIX) as impostor:
        impostor.bind(str(beside(store)))
        impostor.listen()
        with pytest.raises(NoHost):
            await ask_status(store)
    assert trio.current_time() == 5


async def test_a_status_that_cannot_be_told_does_not_end_the_host(
    store: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A defect there is logged, and the host goes on."""
    async with served(store) as (host, _):
        monkeypatch.setattr("whenidle.status.socket.document", lambda _: 1 / 0)
        with pytest.raises(NoHost):
            await ask_status(store)
        await host.create_agent("ada")
    assert "the status could not be told" in caplog.text


async def test_the_answer_is_one_line_of_json(store: Path) -> None:
    """For programs of whatever kind: a document, a line end, and the connection is closed."""
    async with served(store):
        stream = await trio.open_unix_socket(str(beside(store)))
        received = b"".join([part async for part in stream])
        await stream.aclose()
    assert received.count(b"\n") == 1
    assert json.loads(received)["agentCount"] == 0
