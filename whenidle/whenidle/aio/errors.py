"""What only an asyncio host can raise."""

from whenidle_actors.errors import WhenidleError


class HostClosed(WhenidleError):
    """The last host of the event loop was closed, and with it the trio run that would have answered the call."""


class WrongLoop(WhenidleError, RuntimeError):
    """The call was made from another event loop or thread than the one that the host was opened on."""


class WorkCancelled(WhenidleError):
    """The asyncio task of a turn, or of a maintenance task, was cancelled, and not by its host."""
