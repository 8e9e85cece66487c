"""The commands, put together."""

from importlib.metadata import version

from cyclopts import App

from whenidle.cli import demo, logs, mcp, messages, preview, reminders, run, task_reading, tasks, top, transfer

app: App = App(
    name="whenidle",
    help="Agents that are given reminders and tasks, and get each exactly once, when they are idle.",
    help_format="markdown",
    help_epilogue=(
        "Exit status: 0 done; 1 refused or failed, nothing changed; 2 usage; 3 the store cannot be used;"
        " 70 a fault of whenidle; 130 Ctrl-C; 141 nobody reads the output."
    ),
    version=lambda: f"whenidle {version('whenidle')}",
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
for command in (
    demo.demo,
    run.run,
    mcp.mcp,
    top.top,
    messages.send,
    reminders.remind,
    reminders.reminders,
    reminders.forget,
    preview.preview,
    logs.log,
    transfer.export,
    transfer.import_,
    transfer.check,
):
    app.command(command)

task: App = App(name="task", help="Tasks of the host: made, listed, changed, run by hand.")
for command in (
    tasks.create,
    task_reading.list_,
    task_reading.view,
    tasks.edit,
    tasks.delete,
    tasks.pause,
    tasks.resume,
    task_reading.run,
    task_reading.history,
):
    task.command(command)
app.command(task)

# Imported when it is asked for: nobody who runs agents waits for the lab.
app.command(
    "whenidle.cli.lab:lab",
    name="lab",
    help="The lab: run agents in a controlled world, look for what goes wrong, replay it, see it.",
)
