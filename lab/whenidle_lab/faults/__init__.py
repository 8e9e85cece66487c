"""What goes wrong in a run, and when: drawn at the start of each life, so that it can be left out again."""

from whenidle_lab.faults.kinds import FaultKind
from whenidle_lab.faults.mischief import Mischief
from whenidle_lab.faults.settings import NO_FAULTS, Faults

__all__ = ["NO_FAULTS", "FaultKind", "Faults", "Mischief"]
