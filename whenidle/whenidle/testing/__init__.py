"""Virtual time and simulated hosts for the tests of programs that use `whenidle`.

Installed with the package, pytest has the fixtures `sim`, `virtual_clock` and `host` without further ado:

    async def test_reminds_at_nine(sim):
        async with sim.host() as host:
            agent = await host.create_agent("ada")
            await agent.call_tool("schedule_create", {"prompt": "Stretch.", "after_seconds": 3600})
            await sim.advance(timedelta(hours=1))
            assert [delivery.session_id for delivery in sim.deliveries()] == ["ada"]
"""

from whenidle.testing.sim import Delivery, NotIdle, Sim, TurnRun

__all__ = ["Delivery", "NotIdle", "Sim", "TurnRun"]
