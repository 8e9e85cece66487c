from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.lab.look.busy_day import busy_day
from tests.lab.look.traces import Teller, every_kind, inserted
from whenidle_lab.reading import read
from whenidle_lab.timeline import page
from whenidle_lab.timeline.data import MAX_DETAIL, MAX_TEXT, page_data
from whenidle_lab.timeline.page import embedded
from whenidle_lab.trace import What

HOSTILE = (
    "</script><script>evil()</script><!--<script> ]]> \u2028\u2029 &amp; <img src=x onerror=evil()> %%DATA%% \ud800"
)


class _Elements(HTMLParser):
    """Reads a page as a browser's parser would."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append((self.found[-1][0] if self.found else "", data))


def _data(text: str) -> Any:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert match is not None
    return json.loads(match[1])


def test_a_page_needs_nothing_from_outside() -> None:
    """No element refers to anything but the empty icon, and the policy would not let it."""
    elements = _Elements(page(busy_day()))
    references = [value for _, found in elements.found for key, value in found.items() if key in {"src", "href"}]
    assert references == ["data:,"]
    assert "http" not in page(busy_day()).replace("http-equiv", "")


def test_the_policy_allows_the_pages_own_program_and_nothing_else() -> None:
    """Style and script are named by their hashes; everything else is forbidden."""
    text = page(busy_day())
    elements = _Elements(text)
    (policy,) = [
        found["content"] for _, found in elements.found if found.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    directives = dict(one.split(" ", 1) for one in policy.split("; "))
    assert directives["default-src"] == directives["base-uri"] == directives["form-action"] == "'none'"
    script = text.split("<script>")[1].split("</script>")[0]
    style = text.split("<style>")[1].split("</style>")[0]
    for name, source in (("script-src", script), ("style-src", style)):
        assert directives[name] == f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def test_hostile_texts_stay_texts() -> None:
    """Names, prompts and titles that look like markup, ends of scripts or marks of the template add no element."""
    text = page(every_kind(HOSTILE, HOSTILE), title=HOSTILE)
    tame = _Elements(page(every_kind("ada", "hello"), title="x"))
    assert [tag for tag, _ in _Elements(text).found] == [tag for tag, _ in tame.found]
    assert text.isprintable() or not re.search("[\u2028\u2029\ud800-\udfff]", text)
    data = _data(text)
    assert data["happenings"]["detail"][2]["arguments"]["prompt"] == HOSTILE
    text.encode()


@pytest.mark.parametrize("value", ["<", ">", "&", "\u2028", "\ud800", "</ScRiPt", {"<a>": ["&"]}])
def test_embedded_json_says_the_same_without_dangerous_characters(value: Any) -> None:
    """What is embedded is ASCII without a character that markup knows, and reads back as what it was."""
    text = embedded(value)
    assert text.isascii()
    assert not set(text) & set("<>&")
    assert json.loads(text) == value


def test_a_page_is_called_what_it_should() -> None:
    """The title is the one given, or the scenario's name."""
    assert "<title>busy-day</title>" in page(busy_day())
    assert "<title>a &lt; b</title>" in page(busy_day(), title="a < b")


def test_the_data_is_all_there() -> None:
    """Each happening has its step, its times, its kind, its agent, its words and its details."""
    run = busy_day()
    data, happenings = page_data(run, "x"), run.trace.happenings
    columns = data["happenings"]
    assert {len(column) for column in columns.values()} == {len(happenings)}
    last = happenings[-2]
    assert data["kinds"][columns["kind"][-2]] == last.what == "broken"
    assert data["broken"] == len(happenings) - 2
    assert (columns["step"][-2], columns["nanos"][-2], columns["wall"][-2]) == (
        last.step,
        last.monotonic_ns,
        last.wall_millis,
    )
    assert data["agents"] == ["ada", "bob", "eve", "bob-2"]
    assert [data["agents"][one["agent"]] for one in data["occurrences"] if one["admitted"]] == ["bob", "eve"]
    assert len(data["spans"]) == len(read(run.trace).spans)
    assert {data["agents"][agent] for _, agent, _ in data["records"]} == {"ada", "bob", "eve", "bob-2"}
    assert data["finding"]["name"] == "nothing-very-late"
    assert data["facts"]["chosen"] == sum(choice.picked > 0 for choice in run.choices)


def test_details_are_bounded() -> None:
    """Long texts are cut, and details that are still long are replaced by their beginning."""
    teller = Teller()
    teller.tell(What.NOTE, "ada", text="x" * 5_000, more=[{"y": "short"}])
    teller.commit("ada", *(inserted(f"m{number}") for number in range(500)))
    note, _, commit, _ = page_data(teller.run(), "x")["happenings"]["detail"]
    assert note == {"text": f"{'x' * MAX_TEXT}… (+4000 characters)", "more": [{"y": "short"}]}
    assert len(commit["cut"]) == MAX_DETAIL < commit["characters"]


def test_a_run_in_which_nothing_happened_has_a_page() -> None:
    """No happening, no finding: the page is there, and says so."""
    data = _data(page(Teller().run()))
    assert (data["finding"], data["broken"], data["happenings"]["step"]) == (None, None, [])
