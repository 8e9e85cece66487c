"""Reference answers, and a runner that holds this implementation against them.

`python -m tests.vectors DIR [--only NAME]` runs any directory in the format `data/README.md` tells.
"""
