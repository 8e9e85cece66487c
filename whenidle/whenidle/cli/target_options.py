"""The options that say where a task is delivered (SPEC 6.8)."""

from typing import Annotated

import attrs
from cyclopts import Group, Parameter

from whenidle.cli.exits import UsageError
from whenidle_actors.session import check_session_id
from whenidle_protocol.task_record import TargetKind
from whenidle_protocol.task_settings import Caller

_GROUP = Group("Where to (give one)", sort_key=2)


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class TargetOptions:
    """One of the three targets."""

    session: Annotated[
        str | None,
        Parameter(group=_GROUP, metavar="SESSION", help="To this session, which is created if there is none."),
    ] = None
    new_once: Annotated[
        bool,
        Parameter(
            group=_GROUP, negative=(), show_default=False, help="To one new session, made by the first delivery."
        ),
    ] = False
    new: Annotated[
        bool, Parameter(group=_GROUP, negative=(), show_default=False, help="To a new session for each delivery.")
    ] = False

    def chosen(self) -> tuple[TargetKind, Caller] | None:
        """Return the target and the session it is asked for by, None if no target was given.

        Raises:
            UsageError: several were given.
            InvalidArgument: the id cannot name a session.
        """
        options = {"--session": self.session is not None, "--new-once": self.new_once, "--new": self.new}
        given = [option for option, is_given in options.items() if is_given]
        if len(given) > 1:
            raise UsageError(f"give one of --session, --new-once and --new, not {' and '.join(given)}")
        if self.session is not None:
            return TargetKind.THIS_SESSION, Caller(check_session_id(self.session))
        if not given:
            return None
        return TargetKind.NEW_ONCE if self.new_once else TargetKind.NEW, Caller("")
