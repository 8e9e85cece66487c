"""Stores as earlier versions of whenidle left them: never edited, whatever becomes of the code."""

import sqlite3
from contextlib import closing
from pathlib import Path

from whenidle_actors.stores.base import SessionIndex, SessionSlice

from .helpers import header, records

VERSION_1 = """
CREATE TABLE sessions (
    session INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    length INTEGER NOT NULL DEFAULT 0,
    due_millis INTEGER,
    runnable INTEGER NOT NULL DEFAULT 0,
    header TEXT NOT NULL
);
CREATE INDEX runnable_sessions ON sessions (runnable) WHERE runnable;
CREATE INDEX due_sessions ON sessions (due_millis) WHERE due_millis IS NOT NULL;
CREATE TABLE events (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    type TEXT NOT NULL,
    at_millis INTEGER NOT NULL,
    ignorable INTEGER NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
CREATE TABLE foreign_changes (
    change INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL
);
INSERT INTO sessions VALUES (1, 'a', 3, 5, 0, '{"id":"a","createdAt":"2026-01-05T08:00:00.000Z","parent":null,
    "delegationDepth":0,"cwd":"","preset":"","seedLength":0,"forkedFrom":null}');
INSERT INTO sessions VALUES (2, 'b', 1, NULL, 1, '{"id":"b","createdAt":"2026-01-05T08:00:00.000Z","parent":null,
    "delegationDepth":0,"cwd":"","preset":"","seedLength":0,"forkedFrom":null}');
INSERT INTO events VALUES (1, 0, 'test/event', 1000, 0, '{"n":0}');
INSERT INTO events VALUES (1, 1, 'test/event', 1001, 0, '{"n":1}');
INSERT INTO events VALUES (1, 2, 'test/event', 1002, 0, '{"n":2}');
INSERT INTO events VALUES (2, 0, 'test/event', 1000, 0, '{"n":0}');
INSERT INTO foreign_changes VALUES (1, 2);
PRAGMA application_id = 2001298540;
PRAGMA user_version = 1;
PRAGMA journal_mode = WAL;
"""
"""Two sessions, the second with a change by a manager that no host has seen."""

VERSION_1_CONTENTS = {
    "a": SessionSlice(header("a"), SessionIndex(5), 0, records(3)),
    "b": SessionSlice(header("b"), SessionIndex(runnable=True), 0, records(1)),
}


def make_version_1(path: Path) -> None:
    """Write a store of version 1 at `path`."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(VERSION_1)
