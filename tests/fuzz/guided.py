"""`python -m tests.fuzz.guided TARGET SECONDS CORPUS FOLDER`: a search by atheris, guided by coverage.

It has a process of its own because the product is instrumented while it is imported, and because libFuzzer ends the
process it runs in. CORPUS is a folder for inputs that reach something new; what breaks the target, hangs, or fills
the memory is written to FOLDER.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .target import Target

PACKAGES: Final = ["whenidle", "whenidle_actors", "whenidle_protocol", "whenidle_clock"]
"""What is instrumented."""
LONGEST: Final = 4096
"""Bytes of an input."""
ONE_INPUT_SECONDS: Final = 120
MEMORY_MIB: Final = 2048


def has_atheris() -> bool:
    """Return whether a search can be guided."""
    return importlib.util.find_spec("atheris") is not None


def search(name: str, seconds: str, corpus: str, folder: str) -> None:
    """Search until the time is over or something is found, and end the process."""
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=PACKAGES):
        target: Target = importlib.import_module("tests.fuzz.targets").TARGETS[name]
    for number, seed in enumerate(target.seeds):
        (Path(corpus) / str(number)).write_bytes(seed)
    limits = [f"-max_total_time={seconds}", f"-timeout={ONE_INPUT_SECONDS}", f"-rss_limit_mb={MEMORY_MIB}"]
    options = [*limits, f"-max_len={LONGEST}", f"-artifact_prefix={folder}/", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *options, corpus, folder], target.check)
    atheris.Fuzz()


if __name__ == "__main__":
    search(*sys.argv[1:])
