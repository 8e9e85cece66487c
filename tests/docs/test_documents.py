import os
import subprocess
import sys
from pathlib import Path

import pytest

from .documents import DECISIONS, DOCUMENTS, ROOT, Block, anchors, imported, links, python_blocks
from .reference import REFERENCE, pages

BLOCKS = [block for document in DOCUMENTS for block in python_blocks(document)]
FRONT_DOORS = {"whenidle", "whenidle.status", "whenidle.telemetry", "whenidle.testing"}
LINKS = [(document, target) for document in DOCUMENTS for target in links(document)]


@pytest.mark.parametrize("block", BLOCKS, ids=[block.name for block in BLOCKS])
def test_code_does_what_its_document_says(block: Block, tmp_path: Path) -> None:
    """Each Python block is a whole program, which runs in an empty directory without a complaint.

    Where a `text` block follows at once, that is what it prints. A block of tests is run by pytest.
    """
    script = tmp_path / ("test_block.py" if block.is_tests else "block.py")
    script.write_text(block.text, encoding="utf-8")
    pytest_alone = ["-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-o", "trio_mode=true"]
    ran = subprocess.run(
        [sys.executable, "-W", "error", *(pytest_alone if block.is_tests else []), script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    if block.output is not None:
        assert ran.stdout == block.output


@pytest.mark.parametrize("block", BLOCKS, ids=[block.name for block in BLOCKS])
def test_code_imports_from_the_front_door_alone(block: Block) -> None:
    """What a document shows needs none of the packages behind `whenidle`."""
    assert {name for name in imported(block.text) if name.startswith("whenidle")} <= FRONT_DOORS


@pytest.mark.parametrize(
    ("document", "target"), LINKS, ids=[f"{document.relative_to(ROOT)}-{target}" for document, target in LINKS]
)
def test_links_lead_somewhere(document: Path, target: str) -> None:
    """A link to a file names one that is there, and behind # one of its headings."""
    path, _, anchor = target.partition("#")
    file = document.parent / path if path else document
    assert file.exists()
    assert not anchor or anchor in anchors(file)


def test_the_readme_leads_to_every_guide() -> None:
    """Each document in docs is one link away from the README."""
    linked = {ROOT / target.partition("#")[0] for target in links(ROOT / "README.md")}
    assert set(ROOT.glob("docs/*.md")) <= linked


def test_every_decision_is_listed() -> None:
    """The list of decisions names each record once, in the order of their numbers, which has no holes."""
    records = sorted(record.name for record in DECISIONS.glob("[0-9]*.md"))
    assert links(DECISIONS / "README.md") == records
    assert [int(record[:4]) for record in records] == list(range(1, len(records) + 1))


@pytest.mark.parametrize("page", sorted(pages()), ids=lambda page: page.name)
def test_the_reference_says_what_the_docstrings_say(page: Path) -> None:
    """Each page of the reference is as `python -m tests.docs.reference` makes it."""
    assert page.read_text(encoding="utf-8") == pages()[page]


def test_the_reference_has_no_other_pages() -> None:
    """What is not made from docstrings any more is gone."""
    assert set(REFERENCE.glob("*")) == set(pages())
