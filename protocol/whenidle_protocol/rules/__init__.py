"""Reminder rules: one file a timing kind, integer arithmetic on instants, no state."""
