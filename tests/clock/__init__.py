"""The clock floor: instants, waiting, virtual time, the alarm and zones."""
