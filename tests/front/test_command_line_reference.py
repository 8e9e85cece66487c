"""The reference in `docs/command-line.md` names what there is."""

import re
from pathlib import Path

from .command_line import Call
from .test_usage import COMMANDS

REFERENCE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()


def test_every_command_and_option_is_in_the_reference(call: Call) -> None:
    """Each command has an example or a sentence, each option of each command its name in it."""
    for command in COMMANDS:
        assert re.search(rf"whenidle {command}\b|`{command}`|`{command.split()[-1]}`", REFERENCE), command
        options = set(re.findall(r"--[a-z][a-z-]+", call(*command.split(), "--help").out))
        missing = {option for option in options if not re.search(rf"{option}\b", REFERENCE)}
        assert missing == set(), command


def test_every_command_line_in_the_reference_is_one(call: Call) -> None:
    """No example has an option that its command does not take."""
    examples = re.findall(r"^\$ whenidle ((?:.*\\\n)*.*)$", REFERENCE, re.MULTILINE)
    assert len(examples) > 20
    for example in examples:
        words = example.split()
        command = " ".join(words[:2]) if words[0] in {"task", "lab"} else words[0]
        assert command in COMMANDS
        known = set(re.findall(r"--[a-z][a-z-]+", call(*command.split(), "--help").out))
        assert set(re.findall(r"(?<=\s)--[a-z][a-z-]+", example)) <= known, example
