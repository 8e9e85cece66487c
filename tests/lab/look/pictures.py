"""Takes the screenshots of the documents: `python -m tests.lab.look.pictures`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.lab.look.browser import browser
from tests.lab.look.busy_day import busy_day
from whenidle_lab.timeline import page

PICTURES = Path(__file__).parents[3] / "docs" / "pictures"
SIZE = (1440, 880)
"""CSS pixels."""
SCALE = 1.5
"""Real pixels for each, so that small print is sharp."""


def main() -> None:
    """Take a light one and a dark one."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder) / "profile") as chromium:
        file = Path(folder) / "page.html"
        file.write_text(page(busy_day()), encoding="utf-8")
        chromium.resize(*SIZE, SCALE)
        for scheme, name in (("light", "lab-timeline.png"), ("dark", "lab-timeline-dark.png")):
            chromium.prefer(scheme)
            chromium.open(file)
            chromium.click("#out")  # so that the crash is in sight, too
            chromium.picture(PICTURES / name)


if __name__ == "__main__":
    main()
