"""`whenidle task`: tasks of the host, made, listed, changed, run and forgotten without a host."""

import re
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from whenidle import open_manager
from whenidle_actors.stores.base import Batch, TaskWrite

from .command_line import Call, Log

ID = r"task-[0-9a-f]{32}"
INSTANT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z"
DIGEST = ("task", "create", "Digest", "Sum up the week.")
MONDAYS = ("--weekly", "08:00", "--days", "mon", "--zone", "Europe/Paris")


def made(call: Call, *options: str, title: str = "Digest") -> dict[str, Any]:
    """Make a task and return it."""
    result = call("task", "create", title, "Sum up the week.", *options, "--json")
    assert result.status == 0, result
    return dict(result.json)


def test_a_task_is_made_listed_and_shown(call: Call) -> None:
    """`create` tells when it is due, `list` has it in a table, `view` tells all of it."""
    created = call(*DIGEST, *MONDAYS, "--session", "ada")
    assert created.status == 0
    found = re.fullmatch(
        rf"({ID}) is due ({INSTANT}) \(in .+\), weekly mon 08:00 Europe/Paris\n",
        created.out,
    )
    assert found
    listed = call("task", "list").out.splitlines()
    assert re.fullmatch(r"id +status +next occurrence +rule +target +title", listed[0])
    assert re.fullmatch(
        rf"{found[1]}  active  {found[2]} \(in .+\)  weekly mon 08:00 Europe/Paris  session ada  Digest", listed[1]
    )
    assert listed[0].index("title") == listed[1].index("Digest")
    shown = call("task", "view", found[1]).out.splitlines()
    assert shown[0] == found[1]
    assert [line.split()[0] for line in shown[1:]] == [
        *("title", "status", "next", "local", "rule", "target", "occurrences", "updated", "prompt")
    ]
    assert "target             session ada" in shown
    assert "occurrences        delivered 0, missed 0, skipped 0" in shown
    assert shown[-1] == "prompt             Sum up the week."


def test_with_json_the_answers_are_the_tools_own(call: Call) -> None:
    """Scripts get what a model would get from the tools."""
    task = made(call, *MONDAYS, "--session", "ada")
    assert task == {
        "id": task["id"],
        "title": "Digest",
        "prompt": "Sum up the week.",
        "kind": "weekly",
        "time": "08:00",
        "timeZone": "Europe/Paris",
        "weekdays": [1],
        "scheduledAt": task["scheduledAt"],
        "scheduledAtLocal": task["scheduledAtLocal"],
        "target": "this_session",
        "status": "active",
        "updatedAt": task["updatedAt"],
        "targetSessionId": "ada",
    }
    assert re.fullmatch(r".*T08:00:00\.000\+0[12]:00\[Europe/Paris\]", task["scheduledAtLocal"])
    assert call("task", "view", task["id"], "--json").json == task
    page = {"items": [task], "shown": 1, "total": 1, "limit": 100, "offset": 0}
    assert call("task", "list", "--json").json == page
    paused = call("task", "pause", task["id"], "--json").json
    assert (paused["status"], paused["scheduledAt"]) == ("paused", task["scheduledAt"])
    assert call("task", "resume", task["id"], "--json").json["status"] == "active"
    assert call("task", "delete", task["id"], "--json").json == {"id": task["id"], "deleted": True}
    assert call("task", "list", "--json").json["total"] == 0


async def damage(store: Path, task_id: str) -> None:
    """Put other text in a task's place."""
    async with open_manager(store) as manager:
        row = await manager.store.task(task_id)
        spoilt = attrs.evolve(row, data='{"version": 1}', updated_millis=row.updated_millis + 1)
        await manager.store.commit(Batch(tasks=(TaskWrite(task_id, row.updated_millis, spoilt),)))


def test_a_damaged_task_is_named_and_the_others_are_listed(call: Call, store: Path) -> None:
    """On standard error, with what to do; the status is 3 until it is deleted. With `--json` it stands in its place."""
    sound, broken = (made(call, "--after", seconds, "--new") for seconds in ("90", "80"))
    trio.run(damage, store, broken["id"])
    listed = call("task", "list")
    assert listed.status == 3
    assert [line.split()[0] for line in listed.out.splitlines()] == ["id", sound["id"]]
    assert re.fullmatch(
        rf"whenidle: task '{broken['id']}': .+; it does not come due, and `whenidle task delete {broken['id']}` "
        r"removes it\n",
        listed.err,
    )
    result = call("task", "list", "--json")
    assert result.status == 3
    assert [item["id"] for item in result.json["items"]] == [broken["id"], sound["id"]]
    assert result.json["items"][0]["code"] == "internal_error"
    assert (result.json["shown"], result.json["total"]) == (2, 2)
    assert call("task", "view", broken["id"]).status == 3
    assert call("task", "list", "--limit", "1").out == "1 of 2; --offset 1 shows more\n"
    assert call("task", "delete", broken["id"]).status == 0
    assert call("task", "list").status == 0


RRULE = "DTSTART;TZID=Europe/Paris:20300131T090000\nRRULE:FREQ=MONTHLY;BYDAY=-1SU,FR"


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        (["--after", "90"], {"kind": "after", "afterSeconds": 90}),
        (["--at", "2200-01-31T09:00:00Z"], {"kind": "at", "scheduledAt": "2200-01-31T09:00:00.000Z"}),
        (
            ["--at", "2200-01-31 09:00:00", "--zone", "Europe/Paris"],
            {"kind": "at", "scheduledAt": "2200-01-31T08:00:00.000Z"},
        ),
        (["--every", "3600"], {"kind": "every", "everySeconds": 3600}),
        (["--daily", "09:00", "--zone", "UTC"], {"kind": "daily", "time": "09:00", "timeZone": "UTC"}),
        (
            ["--weekly", "09:00:30", "--days", "Fri, monday,mon", "--zone", "europe/paris"],
            {"kind": "weekly", "time": "09:00:30", "timeZone": "Europe/Paris", "weekdays": [1, 5]},
        ),
        (
            ["--cron", "30 9 * * MON-FRI", "--zone", "UTC"],
            {"kind": "cron", "expression": "30 9 * * 1-5", "timeZone": "UTC"},
        ),
        (
            ["--rrule", RRULE],
            {
                "kind": "rrule",
                "rrule": RRULE.replace("-1SU,FR", "FR,-1SU"),
                "timeZone": "Europe/Paris",
                "scheduledAt": "2030-02-01T08:00:00.000Z",
            },
        ),
        (["--rrule", r"DTSTART:22000131T090000Z\nRRULE:FREQ=DAILY"], {"kind": "daily", "time": "09:00"}),
        (["--rrule", r"DTSTART:22000131T090000Z\r\nRRULE:FREQ=HOURLY"], {"kind": "every", "everySeconds": 3600}),
        (["--rrule", "-"], {"kind": "at", "scheduledAt": "2200-01-31T09:00:00.000Z"}),
    ],
)
def test_each_kind_of_rule_has_its_option(call: Call, options: list[str], fields: dict[str, Any]) -> None:
    """All seven kinds, and RRULE text as it is easy to write; a rule is stored as the simplest kind."""
    stdin = b"DTSTART:22000131T090000Z\r\nRRULE:FREQ=DAILY;COUNT=1\r\n"
    result = call(*DIGEST, *options, "--new", "--json", stdin=stdin)
    assert result.status == 0, result
    assert fields.items() <= result.json.items()
    words = call("task", "list").out
    assert "once" in words or fields["kind"] in words or "FREQ" in words


def test_a_rule_may_be_in_a_file(call: Call, tmp_path: Path) -> None:
    """`@FILE` is read, with any line ends; what cannot be text is told as such."""
    file = tmp_path / "rule.ics"
    file.write_bytes(b"DTSTART:22000131T090000Z\r\nRRULE:FREQ=DAILY\r\n")
    assert made(call, "--rrule", f"@{file}", "--new")["kind"] == "daily"
    file.write_bytes(b"DTSTART\xff")
    refused = call(*DIGEST, "--rrule", f"@{file}", "--new", "--json")
    assert (refused.status, refused.json["code"]) == (2, "not_utf8")
    file.write_bytes(b"x" * (1024 * 1024 + 1))
    refused = call(*DIGEST, "--rrule", f"@{file}", "--new", "--json")
    assert (refused.status, refused.json["code"]) == (2, "too_long")
    assert "cannot be read: Is a directory" in call(*DIGEST, "--rrule", f"@{tmp_path}", "--new").error
    assert "cannot be read" in call(*DIGEST, "--rrule", "@a\0b", "--new").error


@pytest.mark.parametrize(
    ("options", "target", "words"),
    [
        (["--session", "ada"], "this_session", "session ada"),
        (["--new-once"], "new_once", "one new session"),
        (["--new"], "new", "new sessions"),
    ],
)
def test_each_target_has_its_option(call: Call, options: list[str], target: str, words: str) -> None:
    """A session that is named, one that the first delivery makes, or one for each delivery."""
    task = made(call, "--after", "90", *options)
    assert task["target"] == target
    assert ("targetSessionId" in task) == (target != "new")
    assert f"target             {words}\n" in call("task", "view", task["id"]).out


def test_a_session_comes_into_being_with_its_task(call: Call, log: Log) -> None:
    """`--session` makes the session that is not there, on `create` and on `edit`, and only if something changes."""
    task = made(call, "--every", "600", "--session", "ada")
    assert log.events() == []
    assert call("log", "ada").status == 0
    conflict = ("--expected-updated-at", "2001-01-01T00:00:00.000Z")
    assert call("task", "edit", task["id"], "--session", "bob", *conflict).status == 1
    assert call("log", "bob").status == 1
    assert call("task", "edit", task["id"], "--session", "bob", "--json").json["targetSessionId"] == "bob"
    assert call("log", "bob").status == 0


def test_policies_are_kept_and_shown(call: Call) -> None:
    """`--gap`, `--overlap` and `--catch-up` show in `view`; none of them is one of the tools' fields."""
    task = made(call, "--daily", "02:30", "--zone", "America/New_York", "--new")
    shown = call("task", "view", task["id"]).out
    assert "clocks" not in shown
    assert "catch-up" not in shown
    options = ("--gap", "shift", "--overlap", "both", "--catch-up", "3600")
    other = made(call, "--daily", "02:30", "--zone", "America/New_York", "--new", *options)
    shown = call("task", "view", other["id"]).out
    assert "changes of clocks  gap shift, overlap both\n" in shown
    assert "catch-up           at most 3600 s late\n" in shown
    assert other.keys() == task.keys()


def test_an_edit_changes_what_is_given_and_nothing_else(call: Call) -> None:
    """Title, prompt, rule and target each alone; an edit that changes nothing does not touch the task."""
    task = made(call, *MONDAYS, "--session", "ada")
    name = task["id"]
    renamed = call("task", "edit", name, "--title", " Weekly ", "--json").json
    assert renamed == {**task, "title": "Weekly", "updatedAt": renamed["updatedAt"]}
    assert renamed["updatedAt"] > task["updatedAt"]
    assert call("task", "edit", name, "--title", "Weekly", "--json").json == renamed
    said = call("task", "edit", name, "--prompt", "-", "--json", stdin="né\n".encode()).json
    assert (said["prompt"], said["scheduledAt"]) == ("né", task["scheduledAt"])
    moved = call("task", "edit", name, "--new", "--json").json
    assert (moved["target"], moved["title"], "targetSessionId" in moved) == ("new", "Weekly", False)
    at = call("task", "edit", name, "--at", "2200-01-31T09:00:00Z")
    assert re.fullmatch(rf"{name} is due 2200-01-31T09:00:00\.000Z \(in \d+d \d+h\)\n", at.out)


def test_a_change_may_be_made_on_one_version_only(call: Call) -> None:
    """Whoever read an older version is refused, and nothing is changed."""
    task = made(call, "--every", "600", "--new")
    name, read = task["id"], ("--expected-updated-at", task["updatedAt"])
    renamed = call("task", "edit", name, "--title", "x", *read, "--json").json
    for command in (["edit", name, "--title", "y"], ["delete", name]):
        refused = call("task", *command, *read)
        assert refused.status == 1
        assert refused.error == "The task has changed since it was read; view it and decide again"
        assert call("task", *command, *read, "--json").json["code"] == "schedule_conflict"
    assert call("task", "view", name, "--json").json == renamed
    assert call("task", "delete", name, "--expected-updated-at", renamed["updatedAt"]).out == f"{name} is deleted\n"


def test_pausing_and_resuming_tell_what_becomes_of_the_task(call: Call) -> None:
    """A task that has ended cannot be paused, and comes back with a new rule."""
    name = made(call, "--every", "600", "--new")["id"]
    for _ in range(2):
        assert call("task", "pause", name).out == f"{name} is paused\n"
    assert f"{name}  paused  -  " in call("task", "list").out
    assert re.match(f"{name} is due {INSTANT}", call("task", "resume", name).out)
    once = made(call, "--after", "1", "--new-once")["id"]
    call("task", "pause", once)
    assert call("task", "edit", once, "--every", "600").out == f"{once} is paused\n"
    assert call("task", "resume", once).out.startswith(f"{once} is due ")


def test_a_task_runs_by_hand(call: Call) -> None:
    """The message is in the inbox, the receipt in the history, and the next occurrence stays."""
    task = made(call, "--every", "600", "--session", "ada")
    name = task["id"]
    assert call("task", "history", name).out == f"{name}  delivered 0, missed 0, skipped 0\n"
    assert call("task", "run", name).out == f"{name} is in the inbox of session ada\n"
    call("task", "pause", name)
    ran = call("task", "run", name, "--json").json
    assert (ran["status"], ran["scheduledAt"]) == ("paused", task["scheduledAt"])
    messages = [event for event in Log(call).events("inbox/insert") if event["data"]["source"] == "schedule"]
    assert [message["data"]["text"].splitlines()[0] for message in messages] == ["[SCHEDULED TASK]"] * 2
    assert 'prompt_json: "Sum up the week."' in messages[0]["data"]["text"]
    told = call("log", "ada").out.splitlines()
    assert rf"m0 (schedule, next-turn): [SCHEDULED TASK] … task_id_json: \"{name}\"".replace("\\", "") in told[0]
    shown = call("task", "view", name).out
    assert re.search(rf"last delivery      {INSTANT}, 0\.0s late, to session ada\n", shown)


def test_a_history_has_pages(call: Call) -> None:
    """The newest comes first; `--before` goes on where a page ended, until there is no more."""
    name = made(call, "--every", "600", "--session", "ada")["id"]
    for _ in range(3):
        call("task", "run", name)
    page = call("task", "history", name, "--limit", "2", "--json").json
    assert page == {
        "id": name,
        "deliveries": 3,
        "missed": 0,
        "skipped": 0,
        "failures": 0,
        "receipts": page["receipts"],
        "before": page["before"],
    }
    assert len(page["receipts"]) == 2
    assert page["receipts"][0]["deliveredAt"] > page["receipts"][1]["deliveredAt"]
    assert page["receipts"][0].keys() == {
        *("taskId", "scheduledAt", "deliveredAt", "targetSessionId", "lateMillis", "missed", "skipped", "outcome")
    }
    assert page["receipts"][0]["outcome"] == {"state": "waiting", "attempts": 0}
    before = str(page["before"])
    last = call("task", "history", name, "--before", before, "--json").json
    assert (len(last["receipts"]), last["before"]) == (1, None)
    lines = call("task", "history", name, "--limit", "2").out.splitlines()
    assert lines[0] == f"{name}  delivered 3, missed 0, skipped 0"
    assert lines[1].split() == ["occurrence", "delivered", "late", "missed", "skipped", "session", "outcome"]
    assert re.fullmatch(rf"({INSTANT})  \1  0\.0s  0       0        ada      waiting", lines[2])
    assert lines[4] == f"--before {before} shows older ones"


def test_a_run_makes_the_session_of_its_target(call: Call) -> None:
    """`--new-once` always goes to the one it reserved, `--new` to another one each time."""
    once = made(call, "--every", "600", "--new-once")
    for _ in range(2):
        assert call("task", "run", once["id"]).out.endswith(f"session {once['targetSessionId']}\n")
    assert len(Log(call, once["targetSessionId"]).events()) == 2
    new = made(call, "--every", "600", "--new")["id"]
    sessions = {call("task", "run", new, "--json").json["lastDelivery"]["targetSessionId"] for _ in range(2)}
    assert len(sessions) == 2
    assert all(len(Log(call, session).events()) == 1 for session in sessions)


def test_a_list_has_pages_and_kinds(call: Call) -> None:
    """Active ones by next occurrence, then the others; pages say how to go on, and none is an error."""
    names = [made(call, "--every", str(seconds), "--new", title=f"t{seconds}")["id"] for seconds in (900, 600, 1200)]
    call("task", "pause", names[0])
    listed = call("task", "list", "--json").json
    assert [item["title"] for item in listed["items"]] == ["t600", "t1200", "t900"]
    assert [item["title"] for item in call("task", "list", "--active", "--json").json["items"]] == ["t600", "t1200"]
    assert [item["title"] for item in call("task", "list", "--inactive", "--json").json["items"]] == ["t900"]
    assert call("task", "list", "--limit", "2").out.splitlines()[-1] == "2 of 3; --offset 2 shows more"
    assert "t900" in call("task", "list", "--offset", "2").out
    assert call("task", "list", "--offset", "3").out == "there are 3 tasks, none of them behind --offset 3\n"
    assert call("task", "list", "--offset", "3", "--json").json == {
        **listed,
        "items": [],
        "shown": 0,
        "offset": 3,
    }
    for name in names[1:]:
        call("task", "delete", name)
    assert call("task", "list", "--active").out == "there are no such tasks\n"
    call("task", "delete", names[0])
    assert call("task", "list").out == "there are no tasks\n"


def test_texts_of_strangers_do_not_command_the_terminal(call: Call) -> None:
    """Titles and prompts are shown on one line; in JSON they are exact."""
    evil = "\x1b[2J[bold]\u202e"
    result = call(
        "task",
        "create",
        evil,
        "-",
        "--every",
        "600",
        "--new",
        "--json",
        stdin=b"a\n\xc2\x9b\x1b]0;",
    )
    name = result.json["id"]
    assert (result.json["title"], result.json["prompt"]) == (evil, "a\n\x9b\x1b]0;")
    shown = call("task", "list").out + call("task", "view", name).out
    assert shown.count(r"\x1b[2J[bold]\u202e") == 2
    assert r"prompt             a\n\x9b\x1b]0;" in shown
    assert not set(shown) & {"\x1b", "\x9b", "\u202e"}


def test_wide_characters_do_not_bend_a_table(call: Call) -> None:
    """Columns line up by the cells that a terminal needs."""
    for session in ("a", "b" * 20):
        made(call, "--every", "600", "--session", session, title="日本")
    lines = call("task", "list").out.splitlines()
    assert {line.index("日本") for line in lines[1:]} == {lines[0].index("title")}


def test_a_reserved_session_that_is_there_already_is_used(call: Call) -> None:
    """Whoever has sent something to it first does not keep the task from its session."""
    task = made(call, "--every", "600", "--new-once")
    call("send", task["targetSessionId"], "hello")
    assert call("task", "run", task["id"]).status == 0
    messages = Log(call, task["targetSessionId"]).events()
    assert [message["data"]["source"] for message in messages] == ["user", "schedule"]
