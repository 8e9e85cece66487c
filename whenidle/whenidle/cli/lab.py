"""`whenidle lab`: its commands, put together. Imported only when one of them is asked for."""

from cyclopts import App

from whenidle.cli import lab_recordings, lab_runs

lab: App = App(name="lab", result_action="return_value")
lab.command(lab_runs.list_)
lab.command(lab_runs.run)
lab.command(lab_recordings.replay)
lab.command(lab_recordings.shrink)
lab.command(lab_recordings.timeline)
