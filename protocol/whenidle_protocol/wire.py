"""Strict reading and writing of JSON objects as attrs classes, which may hold others.

A field is written under its own name in camel case, and nothing is coerced: an unknown or missing
key, a bool where a number belongs, null where a key may only be absent, are all errors. Two
converters share the hooks: a fast one for every event of a log, and a detailed one that runs only
after the fast one failed, to say where.
"""

from __future__ import annotations

import re
from datetime import datetime
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

import attrs
from cattrs import Converter, transform_error
from cattrs.errors import ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from whenidle_clock.instants import format_instant, parse_instant
from whenidle_protocol.errors import CorruptLog
from whenidle_protocol.json_values import json_object, safe_integer

if TYPE_CHECKING:
    from collections.abc import Callable
    from enum import Enum

T = TypeVar("T")


def structure(payload: Any, shape: type[T]) -> T:
    """Return the JSON value `payload` as an instance of the attrs class `shape`.

    Raises:
        CorruptLog: it is not exactly that; `why` names the field as a path (`$.turn`) and the reason.
    """
    try:
        fields = _fields(payload)
    except ValueError as error:
        raise CorruptLog(f"{error} @ $") from None
    try:
        return _FAST.structure(fields, shape)
    except Exception as error:
        raise CorruptLog(_explain(fields, shape)) from error


def unstructure(value: Any) -> dict[str, Any]:
    """Return the attrs instance `value` as a JSON object, keys in the order of its fields."""
    result: dict[str, Any] = _FAST.unstructure(value)
    return result


def teach(kind: Any, read: Callable[[Any], Any], write: Callable[[Any], Any]) -> None:
    """Have fields of the type `kind`, which none of the hooks here can read, go through two functions.

    Args:
        kind: the type as fields are annotated with it.
        read: from a JSON value; a ValueError says what is wrong with it.
        write: to a JSON value.
    """
    _HOOKS[kind] = lambda value, _: read(value)
    _FAST.register_unstructure_hook_func(lambda shape: shape is kind, write)


def _explain(payload: dict[str, Any], shape: type[Any]) -> str:
    try:
        _DETAILED.structure(payload, shape)
    except Exception as error:  # noqa: BLE001 - turned into words, whatever it is
        found = transform_error(error, format_exception=_words)
        return "; ".join(re.sub(r"@ \$[.\w]+$", lambda path: _camel(path[0]), each) for each in found)
    raise AssertionError("the two converters disagree")  # pragma: no cover - they share every hook


def _words(error: BaseException, _type: type | None) -> str:
    if isinstance(error, KeyError):
        return "required field missing"
    if isinstance(error, ForbiddenExtraKeysError):
        return f"no such field: {', '.join(sorted(map(repr, error.extra_fields)))}"
    return str(error)


_KINDS: dict[type, str] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    tuple: "an array",
    dict: "an object",
}


def _kind(value: Any) -> str:
    kind = cast("type[object]", type(value))
    return _KINDS.get(kind, f"a {kind.__name__}")


def _fields(value: Any) -> dict[str, Any]:
    fields = json_object(value)
    if fields is None:
        raise ValueError(f"is {_kind(value)}, not an object")
    return fields


def _text(value: Any, _: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"is {_kind(value)}, not a string")
    return value


def _whole(value: Any, _: Any) -> int:
    number = safe_integer(value)
    if number is None:
        raise ValueError(f"is {value if type(value) is float else _kind(value)}, not a safe integer")
    return number


def _flag(value: Any, _: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"is {_kind(value)}, not true or false")
    return value


def _texts(value: Any, _: Any) -> tuple[str, ...]:
    # A tuple comes from an event that is about to be written, a list from JSON.
    if type(value) not in {list, tuple} or any(type(item) is not str for item in value):
        raise ValueError("is not an array of strings")
    texts: tuple[str, ...] = tuple(value)
    return texts


def _instant(value: Any, _: Any) -> datetime:
    return parse_instant(_text(value, _))


def _anything(value: Any, _: Any) -> Any:
    return value


def _member(kind: type[Enum]) -> Callable[[Any, Any], Enum]:
    members = {each.value: each for each in kind}

    def read(value: Any, _: Any) -> Enum:
        # An event that is about to be written holds the member itself, which is a str too.
        member = members.get(value) if isinstance(value, str) else None
        if member is None:
            raise ValueError(f"is not one of {', '.join(members)}")
        return member

    return read


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


_HOOKS: dict[Any, Callable[[Any, Any], Any]] = {
    str: _text,
    int: _whole,
    bool: _flag,
    tuple[str, ...]: _texts,
    datetime: _instant,
    Any: _anything,
}


def _hook(kind: Any, converter: Converter) -> Callable[[Any, Any], Any]:
    if NoneType in get_args(kind):
        # None stands for a key that is absent, and is not read from null.
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    if kind in _HOOKS:
        return _HOOKS[kind]
    if attrs.has(kind):
        return lambda value, _: converter.structure(_fields(value), kind)
    return _member(kind)


def _converter(*, detailed: bool) -> Converter:
    converter = Converter(detailed_validation=detailed)

    def reader(shape: type[Any]) -> Any:
        # Hooks are given field by field: found by type, those of `str` would also serve a StrEnum.
        fields: Any = {
            each.name: override(rename=_camel(each.name), struct_hook=_hook(each.type, converter))
            for each in attrs.fields(attrs.resolve_types(shape))
        }
        return make_dict_structure_fn(
            shape,
            converter,
            _cattrs_forbid_extra_keys=True,
            _cattrs_detailed_validation=detailed,
            **fields,
        )

    def writer(shape: type[Any]) -> Any:
        fields: Any = {each.name: override(rename=_camel(each.name)) for each in attrs.fields(shape)}
        return make_dict_unstructure_fn(shape, converter, _cattrs_omit_if_default=True, **fields)

    converter.register_structure_hook_factory(attrs.has, reader)
    converter.register_unstructure_hook_factory(attrs.has, writer)
    converter.register_unstructure_hook(datetime, format_instant)
    return converter


_FAST = _converter(detailed=False)
_DETAILED = _converter(detailed=True)
