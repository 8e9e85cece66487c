"""The lab's own scenarios; `whenidle_lab.subjects` finds them by name.

Each is small, draws its own sizes and times, and bears every fault that makes sense in it, so that many different runs
of it take little time.
"""
