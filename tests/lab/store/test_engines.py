"""Both engines are the same store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from tests.lab.faults.worlds import RandomChoices, busy
from tests.stores.helpers import creates
from whenidle_actors.errors import SessionExists
from whenidle_actors.stores.base import Role
from whenidle_lab.engines import make_engine
from whenidle_lab.faults import FaultKind
from whenidle_lab.faults.kinds import LIES
from whenidle_lab.run import run
from whenidle_lab.subjects import own_subjects

if TYPE_CHECKING:
    from whenidle_lab.subjects import Subject

SLOW = {"hourly"}
"""Too long for this, and nothing in it that the others have not."""


@pytest.mark.parametrize("subject", [one for one in own_subjects() if one.name not in SLOW], ids=lambda one: one.name)
def test_the_codec_and_the_schema_change_nothing(subject: Subject) -> None:
    """Over the real codec, schema and statements of SQLite a run is the same, byte for byte, as in memory."""
    for seed in range(2):
        digests = set[str]()
        for engine in ("memory", "sqlite"):
            scenario = subject.make()
            scenario.engine = engine  # type: ignore[misc]  # for this instance alone
            digests.add(run(scenario, RandomChoices(seed), digest=True).digest)
        assert len(digests) == 1


def test_faults_change_nothing_either() -> None:
    """Nor is it another one when everything goes wrong that may: what SQLite says is what memory plays."""
    for seed in range(8):
        first, second = (
            run(busy(*set(FaultKind) - LIES, engine=engine, most=3), RandomChoices(seed), digest=True)
            for engine in ("memory", "sqlite")
        )
        assert first.digest == second.digest


@pytest.mark.parametrize("name", ["memory", "sqlite"])
def test_an_engine_is_a_store_by_itself(name: str) -> None:
    """Without a simulated store around it, an engine commits and reads like any store."""
    engine = make_engine(name)

    async def main() -> None:
        async with engine.opened(Role.HOST):
            await engine.commit(creates("a"))
            with pytest.raises(SessionExists):
                await engine.commit(creates("a"))
            assert [head.id for head in await engine.sessions()] == ["a"]

    trio.run(main)
