"""Virtual time and simulated hosts for the tests of programs that use `whenidle`.

Installed with the package, pytest has the fixtures `sim`, `virtual_clock` and `host` without further ado:

    async def test_reminds_at_nine(sim):
        async with sim.host() as host:
            agent = await host.create_agent("ada")
            await agent.call_tool("schedule_create", {"prompt": "Stretch.", "after_seconds": 3600})
            await sim.advance(timedelta(hours=1))
            assert [delivery.session_id for delivery in sim.deliveries()] == ["ada"]
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whenidle.testing.sim import Delivery, NotIdle, Sim, TurnRun

__all__ = ["Delivery", "NotIdle", "Sim", "TurnRun"]

if not TYPE_CHECKING:  # as in `whenidle`: pytest imports this package for the plugin in it

    def __getattr__(name: str) -> object:
        """Import one of the names (PEP 562).

        Raises:
            AttributeError: it is none.
        """
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        from whenidle.testing import sim  # noqa: PLC0415 - that is the point

        value = globals()[name] = getattr(sim, name)
        return value

    def __dir__() -> list[str]:
        """Return the names, whether they have been imported or not."""
        return sorted({*globals(), *__all__})
