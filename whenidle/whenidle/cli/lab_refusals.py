"""What the commands of the lab refuse, in the form of all commands."""

from collections.abc import Generator
from contextlib import contextmanager

from whenidle.cli.exits import CommandRefused, UsageError
from whenidle_lab.adapter import AdapterMisfit
from whenidle_lab.files import RecordingError
from whenidle_lab.processes import WorkerError
from whenidle_lab.shrink import NotReproduced
from whenidle_lab.strategies import StrategyError
from whenidle_lab.subjects import ScenarioError

_CODES: tuple[tuple[type[Exception], str], ...] = (
    (RecordingError, "bad_recording"),
    (NotReproduced, "not_reproduced"),
    (WorkerError, "worker_failed"),
    (AdapterMisfit, "trio_misfit"),
)


@contextmanager
def lab_refusals() -> Generator[None, None, None]:
    """Tell what the lab refuses as every command does."""
    try:
        yield
    except (ScenarioError, StrategyError) as error:
        code = "bad_scenario" if isinstance(error, ScenarioError) else "bad_strategy"
        raise UsageError(str(error), code) from error
    except tuple(kind for kind, _ in _CODES) as error:
        code = next(code for kind, code in _CODES if isinstance(error, kind))
        raise CommandRefused(code, str(error)) from error
