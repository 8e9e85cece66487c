"""One HTML page that needs nothing else: no network, no fonts, no other file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from whenidle_lab.reading import visible
from whenidle_lab.timeline.data import page_data

if TYPE_CHECKING:
    from whenidle_lab.findings import Run

SCRIPTS: Final = ("words", "model", "axis", "layout", "paint", "draw", "rows", "ruler", "overview", "panel", "main")
"""The parts of the program, in `assets`, in the order in which they need each other."""

_ASSETS = files("whenidle_lab.timeline") / "assets"


def page(run: Run, *, title: str = "") -> str:
    """Return a page on which a person sees what happened in a run.

    The trace is all it is made from; the more `detailed` the run was, the more there is to see. What agents,
    users and models have written is shown as text and cannot become anything else: it is embedded as JSON
    without a character that could end its element, and the page's policy runs no script but its own.

    Args:
        run: what to show.
        title: what to call it; the scenario's name if not given.
    """
    heading = title or run.scenario
    style, script = _asset("page.css"), _program()
    return _filled(
        _asset("page.html"),
        TITLE=html.escape(visible(heading)),
        POLICY=_policy(style, script),
        STYLE=style,
        DATA=embedded(page_data(run, heading)),
        SCRIPT=script,
    )


def embedded(value: Any) -> str:
    """Return a JSON value as text that is safe inside a `script` element, whatever is in it."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _filled(template: str, **parts: str) -> str:
    """Return the template with its marks filled: in one pass, so that no part is searched for marks."""
    pieces = template.split("%%")  # text, name, text, name, … text
    pieces[1::2] = [parts[name] for name in pieces[1::2]]
    return "".join(pieces)


def _program() -> str:
    return "(() => {\n" + '"use strict";\n' + "\n".join(_asset(f"{name}.js") for name in SCRIPTS) + "})();\n"


def _policy(style: str, script: str) -> str:
    """Return a policy that allows this style, this script, and nothing else."""
    allowed = {
        "default-src": "'none'",
        "script-src": _hash(script),
        "style-src": _hash(style),
        "img-src": "data:",  # the empty icon, so that no browser asks a server for one
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {source}" for name, source in allowed.items())


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest())
    return f"'sha256-{digest.decode()}'"


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")
