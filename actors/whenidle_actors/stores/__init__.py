"""Stores: one contract, and what keeps it: memory, SQLite, and JSON Lines to move a session by."""
