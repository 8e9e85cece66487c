"""Where results go: text for people, or JSON for programs, never a mixture."""

import sys
from collections.abc import Iterable
from typing import Self

import attrs
from rich.console import Console
from rich.text import Text

from whenidle.cli.exits import Failure
from whenidle.cli.text import json_line


@attrs.frozen
class Output:
    """Standard output and standard error of one command, as they were when it started.

    Colours are used only where standard output is a terminal, and then `NO_COLOR` is respected. Text given to
    `say` must have gone through `text.visible` if it is not ours.
    """

    json: bool
    console: Console

    @classmethod
    def standard(cls, *, json: bool) -> Self:
        """Return the output of this process."""
        return cls(json, _console())

    @property
    def terminal(self) -> bool:
        """Whether people look at standard output as it comes."""
        return self.console.is_terminal and not self.json

    def answer(self, document: object, *lines: str | Text) -> None:
        """Give a result: `document` to programs, `lines` to people."""
        if self.json:
            self.document(document)
        else:
            self.say(*lines)

    def say(self, *lines: str | Text) -> None:
        """Write lines for people; they are neither wrapped nor read as markup."""
        for line in lines:
            self.console.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)

    def complain(self, lines: Iterable[str]) -> None:
        """Write lines for people to standard error; with `--json` the document has to tell it."""
        if not self.json:
            sys.stdout.flush()
            sys.stderr.writelines(f"whenidle: {line}\n" for line in lines)
            sys.stderr.flush()

    def document(self, document: object) -> None:
        """Write one JSON document on a line of its own, at once."""
        stream = sys.stdout
        unicode = (stream.encoding or "").lower().replace("-", "") == "utf8"
        stream.write(json_line(document, ascii_only=not unicode) + "\n")
        stream.flush()

    def flush(self) -> None:
        """Let readers have what has been written so far."""
        sys.stdout.flush()

    def fail(self, failure: Failure) -> None:
        """Tell why the command failed: one line on standard error, or a document on standard output."""
        if self.json:
            self.document({"code": failure.code, "message": failure.message})
            return
        sys.stdout.flush()
        sys.stderr.write(f"whenidle: {failure.message}\n")
        sys.stderr.flush()


def _console() -> Console:
    # The environment may force colours on rich; into a file or a pipe they never go.
    return Console(file=sys.stdout, force_terminal=sys.stdout.isatty(), legacy_windows=False)
