"""`whenidle lab`: its commands, put together. Imported only when one of them is asked for."""

from cyclopts import App

from whenidle.cli import lab_recordings, lab_runs

lab: App = App(name="lab", result_action="return_value")
for command in (
    lab_runs.list_,
    lab_runs.run,
    lab_recordings.replay,
    lab_recordings.shrink,
    lab_recordings.timeline,
):
    lab.command(command)
