"""A run as one page to look at: lanes, turns, commits, clocks, occurrences, and where it broke."""

from whenidle_lab.timeline.page import page

__all__ = ["page"]
