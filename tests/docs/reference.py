"""The API reference in docs/reference, made from docstrings: `python -m tests.docs.reference` writes it anew."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

import griffe

from .documents import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REFERENCE = ROOT / "docs" / "reference"

FLOORS = ("clock", "protocol", "actors", "lab", "whenidle")
MODULES = {
    "whenidle": "Hosts, agents, time, reminders, tasks and rules.",
    "whenidle.errors": "Every exception that the runtime raises on purpose.",
    "whenidle.aio": "The same for hosts on asyncio.",
    "whenidle.lab": "Exploring one's own agents under faults.",
    "whenidle.testing": "The pytest plugin: virtual time and simulated hosts as fixtures.",
    "whenidle.telemetry": "Spans and metrics.",
}
"""The modules that users import from, and what each is for."""

_SOURCES = {"whenidle.errors": "whenidle_actors.errors"}
_LINE = 100
"""Characters that a page shows without scrolling."""


@functools.cache
def pages() -> dict[Path, str]:
    """Return the text of each page."""
    # What has to be looked up once for all: where a name comes from.
    root = griffe.GriffeLoader(search_paths=[ROOT / floor for floor in FLOORS], docstring_parser="google")
    for package in ("whenidle", "whenidle_lab", "whenidle_actors", "whenidle_protocol", "whenidle_clock"):
        root.load(package)
    root.resolve_aliases(external=False)
    found = {REFERENCE / f"{name}.md": "\n".join(_page(root, name, about)) for name, about in MODULES.items()}
    found[REFERENCE / "README.md"] = "\n".join(_contents())
    return found


def _contents() -> Iterator[str]:
    yield "# Reference"
    yield ""
    yield "Made from the docstrings. Everything that is not here is the project's own and may change."
    yield ""
    for name, about in MODULES.items():
        yield f"- [`{name}`]({name}.md): {about}"
    yield ""


def _page(loader: griffe.GriffeLoader, name: str, about: str) -> Iterator[str]:
    module = loader.modules_collection[_SOURCES.get(name, name)]
    yield f"# `{name}`"
    yield ""
    yield about
    yield ""
    exported = [str(each) for each in module.exports or ()] or _public(module)
    items = [(each, module[each]) for each in exported]
    for each, item in sorted(items, key=lambda pair: pair[0].lower()):
        target = item.final_target if isinstance(item, griffe.Alias) else item
        if not target.is_module:
            yield from _item(each, target)


def _public(module: griffe.Object) -> list[str]:
    return [each for each, item in module.members.items() if not each.startswith("_") and not item.is_alias]


def _item(name: str, item: griffe.Object) -> Iterator[str]:
    yield f"## `{name}`"
    yield ""
    if isinstance(item, griffe.Class):
        yield from _class(name, item)
    elif isinstance(item, griffe.Function):
        yield from _signature(item, name)
        yield from _docstring(item)
    elif isinstance(item, griffe.Attribute):
        yield f"`{name} = {item.value}`"
        yield ""
        yield from _docstring(item)


def _class(name: str, item: griffe.Class) -> Iterator[str]:
    yield from _docstring(item)
    members = [(each, member) for each, member in item.members.items() if not each.startswith("_")]
    attributes = [(each, member) for each, member in members if isinstance(member, griffe.Attribute)]
    values = [(each, member) for each, member in attributes if "property" not in member.labels]
    if values:
        yield "| attribute | is |"
        yield "|---|---|"
        for each, member in values:
            yield f"| {_cell(_declared(each, member))} | {_prose(member)} |"
        yield ""
    for each, member in attributes:
        if "property" in member.labels:
            yield f"### `{name}.{each}`"
            yield ""
            yield f"A property: `{member.annotation}`."
            yield ""
            yield from _docstring(member)
    for each, method in members:
        if isinstance(method, griffe.Function):
            yield f"### `{name}.{each}`"
            yield ""
            yield from _signature(method, each)
            yield from _docstring(method)


def _declared(name: str, member: griffe.Attribute) -> str:
    if member.annotation is not None and "ClassVar" not in str(member.annotation):
        return f"{name}: {member.annotation}"
    return name if member.value is None else f"{name} = {member.value}"


def _cell(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def _prose(member: griffe.Attribute) -> str:
    if member.docstring is None:
        return ""
    return re.sub(r"\s+", " ", member.docstring.value).replace("|", "\\|")


def _signature(function: griffe.Function, name: str) -> Iterator[str]:
    is_async = "async " if "async" in function.labels else ""
    yield "```text"
    yield _wrapped(f"{is_async}def {function.signature(name=name)}")
    yield "```"
    yield ""


def _wrapped(signature: str) -> str:
    """Return a signature with one parameter on each line if it is long."""
    if len(signature) <= _LINE:
        return signature
    head, rest = signature.split("(", 1)
    parameters, depth, start = list[str](), 0, 0
    for index, letter in enumerate(rest):
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0 or (letter == "," and depth == 0):
            parameters.append(f"    {rest[start:index].strip()},")
            start = index + 1
        if depth < 0:
            return "\n".join([f"{head}(", *parameters, rest[index:]])
    return signature


def _docstring(item: griffe.Object) -> Iterator[str]:
    if item.docstring is None:
        return
    for section in item.docstring.parsed:
        if section.kind is griffe.DocstringSectionKind.text:
            yield section.value
            yield ""
        elif section.kind in {griffe.DocstringSectionKind.parameters, griffe.DocstringSectionKind.attributes}:
            yield from (f"- `{each.name}`: {_joined(each.description)}" for each in section.value)
            yield ""
        elif section.kind is griffe.DocstringSectionKind.raises:
            yield "Raises:"
            yield ""
            yield from (
                f"- `{str(each.annotation).strip('()')}`: {_joined(each.description)}" for each in section.value
            )
            yield ""
        else:
            yield f"{section.title or section.kind.value}:"
            yield ""
            yield from (_joined(each.description) for each in section.value)
            yield ""


def _joined(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def main() -> None:
    """Write the pages, and take away those that are not made any more."""
    made = pages()
    REFERENCE.mkdir(exist_ok=True)
    for old in set(REFERENCE.glob("*.md")) - set(made):
        old.unlink()
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
