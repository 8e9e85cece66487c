"""Runs in other processes, which may hang or die of it."""

from whenidle_lab.processes.workers import WorkerError, Workers

__all__ = ["WorkerError", "Workers"]
