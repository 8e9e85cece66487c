"""The project's documents as the tests read them: code blocks, links and headings."""

import ast
import re
from itertools import zip_longest
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
DECISIONS = ROOT / "docs" / "decisions"

_FENCED = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE_SPAN = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"\[[^]]*]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(?P<title>.+)$", re.MULTILINE)
_NOT_IN_AN_ANCHOR = re.compile(r"[^\w\- ]")


@attrs.frozen
class Block:
    """A code block, and what the document says it prints."""

    name: str
    """The document and the line that the block begins at."""
    text: str
    output: str | None
    """The `text` block that follows with nothing in between, if one does."""

    @property
    def is_tests(self) -> bool:
        """Whether it holds tests that it does not run itself."""
        return "def test_" in self.text and "trio.run(" not in self.text


def python_blocks(document: Path) -> list[Block]:
    """Return the Python code of a document, block by block."""
    source = document.read_text(encoding="utf-8")
    fenced = list(_FENCED.finditer(source))
    found = []
    for block, following in zip_longest(fenced, fenced[1:]):
        if block["language"] != "python":
            continue
        printed = None
        if following and following["language"] == "text" and not source[block.end() : following.start()].strip():
            printed = following["text"]
        line = source.count("\n", 0, block.start()) + 1
        found.append(Block(f"{document.relative_to(ROOT)}:{line}", block["text"], printed))
    return found


def imported(code: str) -> set[str]:
    """Return the names of the modules that some code imports, or imports from."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def links(document: Path) -> list[str]:
    """Return the targets of a document's links, those to other sites left out."""
    prose = _CODE_SPAN.sub("code", _FENCED.sub("", document.read_text(encoding="utf-8")))
    targets = [link["target"] for link in _LINK.finditer(prose)]
    return [target for target in targets if not target.startswith(("https://", "http://", "mailto:"))]


def anchors(document: Path) -> set[str]:
    """Return what a link may name behind `#`: the headings, as Git hosting sites write them."""
    prose = _FENCED.sub("", document.read_text(encoding="utf-8"))
    titles = (heading["title"].lower() for heading in _HEADING.finditer(prose))
    return {_NOT_IN_AN_ANCHOR.sub("", title).replace(" ", "-") for title in titles}
