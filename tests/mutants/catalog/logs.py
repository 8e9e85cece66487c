"""Logs, folds and commits, broken."""

from __future__ import annotations

from tests.mutants.patches import Mutant

SESSION = "whenidle_actors.session"

LOGS = (
    Mutant(
        "drops-the-refold",
        SESSION,
        "        self._fold = None\n        expected = state.length\n",
        "        expected = state.length\n",
        "after a failed commit the log is read back",
    ),
    Mutant(
        "takes-uncertain-for-done",
        SESSION,
        "            except SequenceConflict:\n                continue\n            self.keep(draft)\n",
        "            except SequenceConflict:\n                continue\n"
        "            except Exception:\n                return answer\n            self.keep(draft)\n",
        "what is acknowledged is durable",
    ),
    Mutant(
        "commits-one-event-at-a-time",
        SESSION,
        "                draft = self._draft(state, events, beside)\n                await self._journal.commit(draft.batch)\n",
        "                for event in events:\n"
        "                    draft = self._draft(await self.confirm(), (event,), beside)\n"
        "                    await self._journal.commit(draft.batch)\n"
        "                    self.keep(draft)\n",
        "message and dispatch are one commit",
    ),
    Mutant(
        "decides-once-whatever-happened",
        SESSION,
        "            except SequenceConflict:\n                continue\n            self.keep(draft)\n",
        "            except SequenceConflict:\n                return answer\n            self.keep(draft)\n",
        "a decision that lost a race is made again",
        ("managers",),
    ),
    Mutant(
        "forgets-what-is-due-in-the-index",
        SESSION,
        "return IDLE_INDEX if due_millis is None and not runnable else SessionIndex(due_millis, runnable)",
        "return IDLE_INDEX if not runnable else SessionIndex(None, runnable)",
        "what is due is found by the next host",
    ),
    Mutant(
        "forgets-what-runs-in-the-index",
        SESSION,
        "return IDLE_INDEX if due_millis is None and not runnable else SessionIndex(due_millis, runnable)",
        "return IDLE_INDEX if due_millis is None else SessionIndex(due_millis, False)",
        "an interrupted turn is found by the next host",
    ),
    Mutant(
        "forks-own-what-they-inherit",
        "whenidle_actors.host",
        "            seed_length=cut,\n",
        "            seed_length=0,\n",
        "a fork owns no reminder and no message of its origin",
    ),
    Mutant(
        "restores-without-the-last-event",
        SESSION,
        "        for number, record in enumerate(part.records, 1):\n            apply_record(state, record)\n",
        "        for number, record in enumerate(part.records[: max(1, len(part.records) - 1)], 1):\n"
        "            apply_record(state, record)\n",
        "replaying the log gives the live state",
    ),
)
