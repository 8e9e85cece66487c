"""What is done to the words of a command line before they are parsed."""

STDIN_MARK = "\0-"
"""Stands for a bare `-` on the command line; no argument of a process can hold a NUL."""


def mark_stdin(tokens: list[str]) -> list[str]:
    """Return `tokens` with each bare `-` before a `--` marked, since the parser takes it for an option."""
    end = _end_of_options(tokens)
    return [STDIN_MARK if word == "-" else word for word in tokens[:end]] + tokens[end:]


def wants_json(tokens: list[str]) -> bool:
    """Return whether `--json` is among the options, also when the rest of the line makes no sense."""
    return "--json" in tokens[: _end_of_options(tokens)]


def _end_of_options(tokens: list[str]) -> int:
    return tokens.index("--") if "--" in tokens else len(tokens)
