"""Wall time, waiting, zones and virtual time: the floor everything else of whenidle stands on.

Wall time decides whether something is due, monotonic time decides how long to wait, and the two
are never mixed. A `Clock` offers both; `SystemClock` is the machine's, `VirtualClock` the test's.
"""

from whenidle_clock.alarm import Alarm, AlarmStatistics
from whenidle_clock.clock import Clock, StepWatch
from whenidle_clock.inflight import background_io, work_in_flight
from whenidle_clock.instants import (
    EPOCH,
    MAX_INSTANT,
    MAX_MILLIS,
    MIN_INSTANT,
    MIN_MILLIS,
    InstantOutOfRange,
    format_instant,
    from_millis,
    parse_instant,
    to_millis,
)
from whenidle_clock.system import SystemClock
from whenidle_clock.virtual import VirtualClock
from whenidle_clock.zones import (
    Gap,
    LocalTimeInGap,
    Overlap,
    UnknownZone,
    load_zone,
    occurrences_of,
    resolve_once,
)

__all__ = [
    "EPOCH",
    "MAX_INSTANT",
    "MAX_MILLIS",
    "MIN_INSTANT",
    "MIN_MILLIS",
    "Alarm",
    "AlarmStatistics",
    "Clock",
    "Gap",
    "InstantOutOfRange",
    "LocalTimeInGap",
    "Overlap",
    "StepWatch",
    "SystemClock",
    "UnknownZone",
    "VirtualClock",
    "background_io",
    "format_instant",
    "from_millis",
    "load_zone",
    "occurrences_of",
    "parse_instant",
    "resolve_once",
    "to_millis",
    "work_in_flight",
]
