"""What the benchmarks have in common: rows, floors, sampling, a scratch folder, the report."""
