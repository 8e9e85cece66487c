"""Tasks beside a real `whenidle run`: made by other processes, delivered by the host."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from .command_line import Call, Log, RunningHost
from .processes import eventually

Start = Callable[..., RunningHost]


def made(call: Call, *options: str) -> dict[str, Any]:
    """Make a task and return it."""
    return dict(call("task", "create", "Digest", "Sum up.", *options, "--json").json)


def test_a_running_host_delivers_what_other_processes_make(host: Start, call: Call, log: Log) -> None:
    """The task comes when it is due, and not before, as a turn, and the host tells of it."""
    running = host("cat")
    task = made(call, "--after", "1", "--session", "ada")
    (message,) = log.until("inbox/insert")
    assert datetime.fromisoformat(message["at"]) >= datetime.fromisoformat(task["scheduledAt"])
    (note,) = log.until("turn/note")
    assert 'prompt_json: "Sum up."' in note["data"]["data"]["stdout"]
    delivered = running.until("task-delivered")
    assert delivered == {
        "at": delivered["at"],
        "event": "task-delivered",
        "session": "ada",
        "tasks": [task["id"]],
        "late_millis": delivered["late_millis"],
        "missed": [0],
    }
    after = call("task", "view", task["id"], "--json").json
    assert (after["status"], after["lastDelivery"]["targetSessionId"]) == ("ended", "ada")
    assert f"{task['id']} has ended; there is nothing to pause" in call("task", "pause", task["id"]).out
    (receipt,) = call("task", "history", task["id"], "--json").json["receipts"]
    assert receipt["scheduledAt"] == task["scheduledAt"]


def test_a_running_host_takes_up_what_is_run_changed_and_deleted(host: Start, call: Call) -> None:
    """A run by hand is a turn at once; a task that was deleted before it was due never comes."""
    host("cat")
    task = made(call, "--every", "600", "--new")
    ran = call("task", "run", task["id"], "--json").json
    Log(call, ran["lastDelivery"]["targetSessionId"]).until("turn/end")
    doomed = made(call, "--after", "1", "--session", "bob")
    assert call("task", "delete", doomed["id"]).status == 0
    assert call("task", "edit", task["id"], "--after", "1", "--session", "ada").status == 0
    Log(call).until("turn/end")
    assert Log(call, "bob").events() == []


def test_what_came_due_while_no_host_ran_is_delivered_once(host: Start, call: Call, log: Log) -> None:
    """After a restart too: the session has one message, and the task is over."""
    name = made(call, "--after", "1", "--session", "ada")["id"]
    eventually(lambda: "overdue" in call("task", "list").out)
    running = host("cat")
    log.until("turn/end")
    running.process.kill()
    running.process.wait()
    host("cat")
    call("send", "ada", "hello")
    log.until("turn/end", 2)
    sources = [event["data"]["source"] for event in log.events("inbox/insert")]
    assert sources == ["schedule", "user"]
    assert call("task", "history", name, "--json").json["deliveries"] == 1


def test_reminders_and_tasks_come_due_on_one_host(host: Start, call: Call) -> None:
    """Reminders and tasks live side by side on one host, each with its own commands."""
    host("cat")
    call("remind", "ada", "tea", "--after", "1")
    made(call, "--after", "1", "--session", "ada")
    messages = Log(call).until("inbox/insert", 2)
    heads = {message["data"]["text"].splitlines()[0] for message in messages}
    assert heads == {"[SCHEDULE REMINDER]", "[SCHEDULED TASK]"}
