from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.lab.look.browser import Browser, browser
from tests.lab.look.busy_day import busy_day
from tests.lab.look.pictures import PICTURES, SCALE, SIZE
from tests.lab.look.traces import Teller, every_kind, long_run
from whenidle_lab.timeline import page

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

pytestmark = pytest.mark.timeout(300)  # the first start of a browser on a busy machine takes its time

HOSTILE = "</script><script>window.evil = 1</script><img src=x onerror='window.evil = 1'>\u2028\u202e"

SCAN = """
const canvas = document.getElementById("marks"), box = canvas.getBoundingClientRect();
const tip = document.getElementById("tip"), found = {};
for (let y = 3; y < box.height; y += 5) for (let x = 2; x < box.width; x += 4) {
  canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + x, clientY: box.top + y, bubbles: true }));
  const words = [...tip.children].map((one) => one.textContent).join("\\n");
  if (!tip.hidden && !(words in found)) found[words] = [box.left + x, box.top + y];
}
return found;
"""
"""Moves over all of the lanes, and returns where the tip said what."""

RED = """
const canvas = document.getElementById("marks"), pen = canvas.getContext("2d"), { width, height } = canvas;
const bad = getComputedStyle(document.documentElement).getPropertyValue("--bad").trim();
const wanted = [1, 3, 5].map((at) => parseInt(bad.slice(at, at + 2), 16));
const { data } = pen.getImageData(0, 0, width, height);
const isBad = (at) => wanted.every((value, index) => Math.abs(data[at + index] - value) < 8);
let best = [0, 0];
for (let x = 0; x < width; x += 1) {
  let count = 0;
  for (let y = 0; y < height; y += 1) if (isBad(4 * (y * width + x))) count += 1;
  if (count > best[1]) best = [x / width, count];
}
return [best[0], best[1] / height];
"""
"""Returns where the reddest column of the lanes is, and how much of it is of the colour of what broke."""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Generator[Browser]:
    """A browser for all tests here."""
    with browser(tmp_path_factory.mktemp("profile")) as made:
        yield made


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages that are looked at, as files."""
    runs = {
        "busy": busy_day(),
        "kinds": every_kind(HOSTILE, HOSTILE),
        "long": long_run(20_000),
        "empty": Teller().run(),
    }
    folder = tmp_path_factory.mktemp("pages")
    for name, run in runs.items():
        (folder / f"{name}.html").write_text(page(run), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in runs}


@pytest.fixture
def busy(chromium: Browser, pages: dict[str, Path]) -> Generator[Browser]:
    """The browser with a busy day before it, in light colours; nothing may be complained of."""
    chromium.requests()
    chromium.prefer("light")
    chromium.resize(*SIZE, 1)
    chromium.open(pages["busy"])
    yield chromium
    assert chromium.console() == []


def _in_sight(page: Browser) -> tuple[int, int]:
    words = page.run("return document.getElementById('marks').getAttribute('aria-description')").split()
    return int(words[2]), int(words[4])


def _picture(page: Browser) -> str:
    return str(page.run("return document.getElementById('marks').toDataURL()"))


def _ground(page: Browser) -> Any:
    return page.run("return getComputedStyle(document.body).backgroundColor")


def test_a_page_asks_for_nothing(busy: Browser, pages: dict[str, Path]) -> None:
    """Loaded from a file, the page makes no request but for itself, and complains of nothing."""
    assert [url for url in busy.requests() if not url.startswith(("chrome:", "data:"))] == [pages["busy"].as_uri()]


def test_where_it_broke_is_seen_at_once(busy: Browser) -> None:
    """A red line from top to bottom is in sight, the finding is told, and the happening is selected."""
    place, share = busy.run(RED)
    assert 0.5 < place < 1
    assert share > 0.85
    assert busy.text("#finding").startswith("nothing-very-late does not hold")
    assert "Here it broke." in busy.text("#selected")
    assert busy.text("#rows .bad").splitlines()[-1].startswith("Broken: nothing-very-late")


def test_one_can_zoom_and_pan(busy: Browser) -> None:
    """By wheel, by buttons, by keys and by dragging; everything is one key away."""
    busy.click("#fit")
    whole = _in_sight(busy)
    busy.wheel(500, 400, -300)
    by_wheel = _in_sight(busy)
    busy.click("#in")
    by_button = _in_sight(busy)
    busy.press("+")
    by_key = _in_sight(busy)
    sizes = [last - first for first, last in (whole, by_wheel, by_button, by_key)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 4
    busy.drag(500, 500, -300)
    dragged = _in_sight(busy)
    assert dragged[0] > by_key[0]
    busy.press("a")
    assert _in_sight(busy)[0] < dragged[0]
    busy.click("#out")
    busy.press("0")
    assert _in_sight(busy) == whole


def test_the_axis_can_be_switched(busy: Browser) -> None:
    """Order, rounds and time are three pictures of one run, by button and by key."""
    busy.click("#fit")
    pictures = [_picture(busy)]
    for name, key in (("rounds", "2"), ("time", "3"), ("order", "1")):
        busy.press(key)
        assert busy.run(f"return document.querySelector('[data-axis={name}]').getAttribute('aria-checked')") == "true"
        pictures.append(_picture(busy))
        busy.click(f"[data-axis={name}]")
        assert _picture(busy) == pictures[-1]
    assert len(set(pictures)) == 3
    assert pictures[0] == pictures[3]


def test_one_can_filter_by_text(busy: Browser) -> None:
    """Only what matches is listed, and where it broke; the rest is pale. Without a text everything is back."""
    before, count = _picture(busy), busy.text("#count")
    busy.type("#search", "changed her mind")
    assert busy.text("#count") == f"3 of {count}"
    assert "the user has changed her mind" in busy.text("#rows")
    assert _picture(busy) != before
    busy.run("document.getElementById('search').value = ''")
    busy.type("#search", " ")
    assert (busy.text("#count"), _picture(busy)) == (count, before)


def test_one_can_filter_by_kind(busy: Browser) -> None:
    """A kind that is switched off leaves the list and the lanes."""
    labels = busy.text("#labels")
    assert "commits" in labels
    busy.click("[data-kind=commit]")
    assert "commits" not in busy.text("#labels")
    assert " of " in busy.text("#count")
    busy.click("[data-kind=commit]")
    assert busy.text("#labels") == labels


def test_one_can_filter_by_agent(busy: Browser) -> None:
    """An agent that is switched off has no lane and no happening in the list."""
    busy.click("#agents summary")
    busy.click("[data-agent='1']")
    assert busy.text("#agents summary") == "3 agents"
    names = busy.run("return [...document.querySelectorAll('#labels h3')].map((one) => one.innerText)")
    assert names == ["process", "wall clock", "store", "ada", "eve", "bob-2"]
    busy.click("#agents .sheet button")
    assert busy.text("#agents summary") == "All agents"


def test_what_the_pointer_is_over_is_explained(busy: Browser) -> None:
    """The tip says what it is, when it was on both clocks, and how it ended; a click shows all of it."""
    busy.click("#fit")
    x, y = next(place for words, place in busy.run(SCAN).items() if words.startswith("eve: turn 1\n"))
    busy.point(x, y)
    tip = busy.text("#tip").splitlines()
    assert tip[0] == "eve: turn 1"
    assert tip[1].startswith("from 3 s, round ")
    assert re.fullmatch(r"to 4 s, round \d+ \(1 s\)", tip[2])
    assert tip[3:] == ["Turn 1 raises: RuntimeError", "2025-12-31 23:59:43"]
    busy.point(x, y, click=True)
    assert "turn-began" in busy.text("#selected")
    busy.point(5, 5)
    assert busy.run("return document.getElementById('tip').hidden")


def test_every_sort_of_mark_can_be_pointed_at(busy: Browser) -> None:
    """Occurrences, clock, crashes, commits, queues, waits, claims, events: each is found on the lanes by its tip."""
    busy.click("#fit")
    tips = list(busy.run(SCAN))
    for first, later in (
        ("schedule-1 “Check the deploy.”", " late"),
        ("The wall clock is set back by 20 s", "3 s, round"),
        ("the wall clock is 20 s behind", ""),
        ("The process crashes", "15 s, round"),
        ("commit ", "is durable: ada gets turn/start"),
        ("1 in the mailbox", "round"),
        ("1 in the inbox", "Commit"),
        ("ada: when_idle", "The wait is over"),
        ("ada: maintenance", "Maintenance returns"),
        ("bob: claim", "maintenance-ended"),
        ("eve: Is cancelled", "9 s"),
        ("bob: Is forked into bob-2", "after 13 events"),
        ("ERROR whenidle.turns", "4 s"),
        ("ada: ada's user is back", "round"),
        ("bob: schedule_create", "The call is refused"),
        ("bob: dispose", "Has been disposed"),
        ("turn/start", "Commit"),
    ):
        assert any(tip.startswith(first) and later in tip for tip in tips), first


def test_one_can_walk_by_keys(busy: Browser) -> None:
    """Arrow keys go from happening to happening, with what is selected told beside, and Enter goes near to it."""
    busy.run("document.getElementById('marks').focus()")
    busy.press("ArrowLeft", "ArrowLeft")
    assert "commit-began" in busy.text("#selected")
    assert "commit " in busy.text("#tip")
    busy.press("ArrowRight")
    assert "eve gets inbox/insert, schedule/change" in busy.text("#selected")
    assert "admitted 12 min 6 s late" in busy.text("#selected")
    before = _in_sight(busy)
    busy.press("Enter")
    first, last = _in_sight(busy)
    assert before[0] < first <= last <= before[1]
    busy.press("Escape")
    assert "Point at a mark" in busy.text("#selected")
    busy.press("b")
    assert "Here it broke." in busy.text("#selected")


def test_the_list_goes_to_a_happening(busy: Browser) -> None:
    """A click on a line of the list selects it and brings it into sight."""
    busy.run("document.getElementById('list').scrollTop = 0")
    busy.settle()
    busy.click("[data-position='5']")
    assert "schedule_create" in busy.text("#selected")
    first, last = _in_sight(busy)
    assert first <= 5 <= last


def test_light_and_dark_follow_the_system(busy: Browser) -> None:
    """The page is dark if the system is, also when that changes, and by its own button; lanes follow."""
    light = _ground(busy), _picture(busy)
    busy.prefer("dark")
    busy.settle()
    dark = _ground(busy), _picture(busy)
    assert light[0] == "rgb(246, 247, 249)"
    assert dark[0] == "rgb(15, 19, 26)"
    assert light[1] != dark[1]
    assert busy.run(RED)[1] > 0.85
    busy.click("#theme")
    assert (_ground(busy), _picture(busy)) == light
    busy.press("t")
    assert (_ground(busy), _picture(busy)) == dark


def test_there_is_help(busy: Browser) -> None:
    """Keys and marks are explained in a dialog, which Escape closes."""
    busy.press("?")
    assert "torn edge" in busy.text("#keys")
    busy.press("Escape")
    assert not busy.run("return document.getElementById('keys').open")


def test_hostile_texts_do_nothing(chromium: Browser, pages: dict[str, Path]) -> None:
    """Names and prompts that are markup are shown as they are, everywhere; the policy stops what got in otherwise."""
    chromium.open(pages["kinds"])
    assert "</script><script>window.evil" in chromium.text("#finding p")
    chromium.click("#agents summary")
    for _ in range(8):
        chromium.press("ArrowLeft")
    assert any(HOSTILE[:20] in tip for tip in chromium.run(SCAN))
    assert chromium.run("return [window.evil === undefined, document.images.length, document.scripts.length]") == [
        True,
        0,
        2,
    ]
    assert chromium.console() == []
    chromium.run("document.body.insertAdjacentHTML('beforeend', '<b onclick=\"window.evil = 1\">x</b>')")
    chromium.run("document.querySelector('body > b').click()")
    assert chromium.run("return window.evil === undefined")
    assert "Content Security Policy" in "".join(chromium.console())


def test_a_long_run_can_be_used(chromium: Browser, pages: dict[str, Path]) -> None:
    """20,000 happenings are shown near where it broke, and can be seen as a whole, zoomed and searched."""
    chromium.open(pages["long"])
    first, last = _in_sight(chromium)
    assert 20 < last - first < 400
    assert chromium.run(RED)[1] > 0.85
    chromium.click("#fit")
    assert _in_sight(chromium)[0] == 0
    assert chromium.draw_millis() < 1_000  # some 30 on a busy machine
    chromium.wheel(600, 500, -400)
    assert _in_sight(chromium)[0] > 0
    chromium.type("#search", "schedule-777")
    chromium.wait("document.getElementById('count').innerText.includes(' of ')")
    assert chromium.text("#count").startswith("3 of ")
    assert chromium.run("return document.getElementById('rows').childElementCount") < 60
    assert chromium.console() == []


def test_an_empty_run_can_be_looked_at(chromium: Browser, pages: dict[str, Path]) -> None:
    """There is nothing to see, and nothing fails."""
    chromium.open(pages["empty"])
    chromium.press("ArrowRight", "b", "Enter", "3", "0", "+")
    assert "everything held" in chromium.text("#facts")
    assert chromium.console() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_documents_have_a_picture(scheme: str) -> None:
    """The screenshots of the documents are there, in the size that `python -m tests.lab.look.pictures` makes."""
    head = (PICTURES / f"lab-timeline{'' if scheme == 'light' else '-dark'}.png").read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    size = int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    assert size == (round(SIZE[0] * SCALE), round(SIZE[1] * SCALE))
