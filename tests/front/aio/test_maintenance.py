"""Maintenance tasks on the asyncio side."""

import asyncio
import traceback

import pytest

from whenidle import InboxView, errors

from .loops import Gate, Run, host


def test_maintenance_runs_in_asyncio(run: Run) -> None:
    """Its result and its exception pass through, the agent is claimed meanwhile, and it cannot wait for itself."""

    async def main() -> None:
        async with host() as there:
            ada = await there.create_agent("ada")

            async def work() -> str:
                assert asyncio.current_task() is not None
                with pytest.raises(errors.WouldWaitForItself):
                    await ada.when_idle()
                with pytest.raises(errors.WouldWaitForItself):
                    await ada.run_maintenance(work)
                return "done"

            async def fail() -> None:
                raise ValueError("no")

            assert await ada.run_maintenance(work) == "done"
            with pytest.raises(ValueError, match="no") as caught:
                await ada.run_maintenance(fail)
            assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fail"

    run(main())


def test_a_claimed_agent_is_busy(run: Run) -> None:
    """A second claim is refused at once; `cancel` aborts the first and says why."""

    async def main() -> None:
        gate = Gate()
        async with host() as there:
            ada = await there.create_agent("ada")
            claim = asyncio.create_task(ada.run_maintenance(gate.pass_through))
            await gate.entered.wait()
            with pytest.raises(errors.AgentBusy):
                await ada.run_maintenance(gate.pass_through)
            await ada.cancel("because")
            with pytest.raises(errors.MaintenanceAborted, match="because"):
                await claim

    run(main())


def test_a_cancelled_claim_cancels_its_task(run: Run) -> None:
    """The maintenance task is cancelled with its caller, and the agent is free when that has ended."""
    ended = list[str]()

    async def main() -> None:
        gate = Gate()

        async def work() -> None:
            try:
                await gate.pass_through()
            finally:
                await asyncio.sleep(0)
                ended.append("work")

        async with host() as there:
            ada = await there.create_agent("ada")
            claim = asyncio.create_task(ada.run_maintenance(work))
            await gate.entered.wait()
            claim.cancel()
            with pytest.raises(asyncio.CancelledError):
                await claim
            assert ended == ["work"]
            assert await ada.run_maintenance(ada.inbox) == InboxView((), ())

    run(main())


def test_maintenance_that_ends_as_cancelled_cancels_its_caller(run: Run) -> None:
    """A `CancelledError` that nobody asked for passes through like any exception."""

    async def cancelled() -> None:
        raise asyncio.CancelledError

    async def main() -> None:
        async with host() as there:
            ada = await there.create_agent("ada")
            with pytest.raises(asyncio.CancelledError):
                await ada.run_maintenance(cancelled)
            await ada.when_idle()

    run(main())
