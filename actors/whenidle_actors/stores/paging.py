"""Reading a lot in pieces, and the arguments that say which piece."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from whenidle_actors.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

T = TypeVar("T")

MAX_LIMIT: Final = 2**31 - 1


class Pages(AsyncIterator[T], Generic[T]):
    """An iterator over items that are fetched a page at a time.

    It holds nothing open between two pages, so it may be left at any item without being closed, which an
    async generator may not.
    """

    def __init__(self, fetch: Callable[[], Awaitable[Sequence[T]]]) -> None:
        """Iterate over what each call of `fetch` returns, until it returns nothing."""
        self._fetch = fetch
        self._page: deque[T] = deque()

    async def __anext__(self) -> T:
        if not self._page:
            self._page.extend(await self._fetch())
        if not self._page:
            raise StopAsyncIteration
        return self._page.popleft()


def check_start(start: int) -> None:
    """Check where a read begins.

    Raises:
        InvalidArgument: it is negative.
    """
    if start < 0:
        raise InvalidArgument(f"start is {start}; events are numbered from 0")


def check_limit(limit: int) -> None:
    """Check how much is asked for.

    Raises:
        InvalidArgument: it is not positive, or too large for any database.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidArgument(f"limit is {limit}; ask for 1 to {MAX_LIMIT}")


def check_offset(offset: int) -> None:
    """Check how much of a list is left out.

    Raises:
        InvalidArgument: it is negative.
    """
    if offset < 0:
        raise InvalidArgument(f"offset is {offset}; a list begins at 0")
