"""All mutants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.mutants.catalog.agents import AGENTS
from tests.mutants.catalog.clock import CLOCK
from tests.mutants.catalog.deliveries import DELIVERIES
from tests.mutants.catalog.inbox import INBOX
from tests.mutants.catalog.logs import LOGS
from tests.mutants.catalog.tasks import TASKS

if TYPE_CHECKING:
    from tests.mutants.patches import Mutant

MUTANTS: tuple[Mutant, ...] = (*CLOCK, *LOGS, *INBOX, *AGENTS, *DELIVERIES, *TASKS)
