"""The runtime broken on purpose, in more than thirty ways, to see that the lab notices: `python -m tests.mutants`."""
