"""Documentation of classes that say what others say, in another loop."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def mirrors(original: type) -> Callable[[type[T]], type[T]]:
    """Give each public member of the decorated class the words of its namesake in `original`.

    So `help()` tells the whole promise in both places, and there is one text to keep true. What a member's own
    docstring says behind its first line is added.
    """

    def document(mirror: type[T]) -> type[T]:
        for name, member in vars(mirror).items():
            model = getattr(original, name, None)
            if not name.startswith("_") and member.__doc__ and model is not None and model.__doc__:
                own = inspect.cleandoc(member.__doc__).partition("\n")[2].strip()
                member.__doc__ = "\n\n".join(filter(None, (inspect.cleandoc(model.__doc__), own)))
        return mirror

    return document
