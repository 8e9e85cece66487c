"""What whenidle costs, next to what else could do the work: `python -m benchmarks`.

Each module here has `run(scale) -> list[Row]`. Peers are measured in the same run, ours and theirs
alternating, because only ratios mean anything on another machine. What the columns of a row are,
`benchmarks.harness.rows` says; what the speed must not fall short of, `benchmarks.harness.floors`.
"""
