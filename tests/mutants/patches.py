"""A mutant: a small named patch of one module, applied to its source as it is imported."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    import types
    from collections.abc import Sequence


class DoesNotApply(Exception):
    """The source that a patch is for has changed."""


@attrs.frozen
class Mutant:
    """One way to break the runtime."""

    name: str
    module: str
    """The module that is patched."""
    old: str
    """Text that occurs exactly once in its source."""
    new: str
    """What takes its place."""
    breaks: str
    """The promise that does not hold any more, in a few words."""
    scenarios: tuple[str, ...] = ()
    """Scenarios in which it shows; all, if not given."""

    def apply(self, source: str) -> str:
        """Return the patched source.

        Raises:
            DoesNotApply: the text is not in it, or more than once.
        """
        found = source.count(self.old)
        if found != 1:
            raise DoesNotApply(f"mutant {self.name}: its text occurs {found} times in {self.module}, not once")
        return source.replace(self.old, self.new)

    def install(self) -> None:
        """Have the module patched when it is imported, which must be yet to come."""
        if self.module in sys.modules:
            raise DoesNotApply(f"mutant {self.name}: {self.module} is imported already")
        sys.meta_path.insert(0, _Finder(self))


class _Finder(MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _Loader(self._mutant, fullname, spec.origin)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, mutant: Mutant, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> types.CodeType:
        path = self.get_filename(fullname)
        source = self._mutant.apply(self.get_data(path).decode())
        code: types.CodeType = compile(source, path, "exec", dont_inherit=True)
        return code
