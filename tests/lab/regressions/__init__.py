"""Bugs of the runtime that the lab has found, each with the smallest run that shows it."""
