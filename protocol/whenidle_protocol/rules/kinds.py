"""The seven kinds of rules as one type (SPEC 6.3). What they have in common is `shape.Rule`."""

from __future__ import annotations

from typing import TypeAlias

from whenidle_protocol.rules.cron import CronRule
from whenidle_protocol.rules.daily import DailyRule
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.once import AfterRule, AtRule
from whenidle_protocol.rules.rrule import RRuleRule
from whenidle_protocol.rules.weekly import WeeklyRule

Rule: TypeAlias = AfterRule | AtRule | EveryRule | DailyRule | WeeklyRule | CronRule | RRuleRule
"""Any rule a task can have."""
