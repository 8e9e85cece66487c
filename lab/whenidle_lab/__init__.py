"""The lab: runs the real runtime in a world it controls, and looks for what goes wrong (SPEC 9)."""
