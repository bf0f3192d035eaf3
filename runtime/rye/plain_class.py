"""Plain data with named fields: what frozen dataclasses are, made in a hundredth of the time when a module is imported.

    class Place(Record):
        path: str
        line: int = 1

    changed(Place("a.py"), line=7)  # Place(path='a.py', line=7)

A class of the standard library's `dataclasses` compiles its methods when it is made, about 1 ms each, and the library itself
takes 10 ms to import: most of what a short command would cost. Here all classes share these methods. To a type checker they
are dataclasses (PEP 681). Annotations must be strings (`from __future__ import annotations`); `ClassVar` names are no fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform

TYPE_CHECKING = False
if TYPE_CHECKING:
    R = TypeVar("R", bound="Record")
else:

    def dataclass_transform(**_: object) -> Callable[[Any], Any]:
        """Do nothing: only type checkers read it."""
        return lambda made: made


class _Field:
    __slots__ = ("default", "factory", "shown")

    def __init__(self, default: object, factory: Callable[[], object] | None, shown: bool) -> None:
        self.default = default
        self.factory = factory
        self.shown = shown


_REQUIRED = object()


def field(*, default: Any = _REQUIRED, factory: Callable[[], Any] | None = None, shown: bool = True) -> Any:
    """Describe a field: its default, what makes the default of each new record, and whether `repr` shows it."""
    return _Field(default, factory, shown)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class _RecordType(type):
    """Makes a record's slots of its annotations."""

    __fields__: dict[str, _Field]
    __setters__: tuple[Callable[[object, object], None], ...]
    __places__: dict[str, int]
    __tails__: dict[int, tuple[Any, ...]]  # how many fields are given -> the defaults of the rest, where all have one
    __check__: Callable[[object], None] | None
    __values__: Callable[[object], tuple[Any, ...]]

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], *, frozen: bool = True) -> _RecordType:
        own = [name for name, kind in namespace.get("__annotations__", {}).items() if not kind.startswith("ClassVar")]
        fields = {name: one for base in bases for name, one in getattr(base, "__fields__", {}).items()}
        fields |= {name: _described(namespace.pop(name, _REQUIRED)) for name in own}
        made = super().__new__(cls, name, bases, {**namespace, "__slots__": tuple(own)})
        made.__fields__ = fields
        made.__places__ = {name: at for at, name in enumerate(fields)}
        # The slot descriptors set a field without `__setattr__`, which frozen records refuse.
        made.__setters__ = tuple(getattr(made, name).__set__ for name in fields)
        made.__tails__ = dict(_tails([*fields.values()]))
        made.__check__ = getattr(made, "__post_init__", None)
        made.__values__ = staticmethod(_reader(tuple(fields)))
        if not frozen:
            # What may change has no hash, as with dataclasses: a changed key would be lost in its dict.
            type.__setattr__(made, "__setattr__", object.__setattr__)
            type.__setattr__(made, "__hash__", None)
        return made


def _described(value: object) -> _Field:
    return value if isinstance(value, _Field) else _Field(value, None, shown=True)


def _tails(fields: list[_Field]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    tail: tuple[Any, ...] = ()
    yield len(fields), tail
    for at in range(len(fields) - 1, -1, -1):
        if fields[at].factory is not None or fields[at].default is _REQUIRED:
            return
        tail = (fields[at].default, *tail)
        yield at, tail


def _reader(names: tuple[str, ...]) -> Callable[[object], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


class Record(metaclass=_RecordType):
    """Base of plain data: fields by annotation, compared and hashed by value, not to be changed.

    With `frozen=False` in the class line the fields may be set, and there is no hash. A method `__post_init__` is
    called last, to check them.

    Raises:
        TypeError: a field is missing, unknown or given twice.
        AttributeError: a field of a frozen record is set.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        """Take the fields in their order, or by name."""
        made = type(self)
        missing = made.__tails__.get(len(given))
        # The short way for positional fields: records are made some dozens of times in each call.
        values = _completed(made, given, named) if named or missing is None else given + missing
        for put, value in zip(made.__setters__, values, strict=True):
            put(self, value)
        if made.__check__ is not None:
            made.__check__(self)

    def __setattr__(self, name: str, _value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be set: make another with `changed`")

    def __eq__(self, other: object) -> bool:
        # A subclass with the same values is another kind of record.
        if type(other) is not type(self):
            return NotImplemented
        return type(self).__values__(self) == type(self).__values__(other)

    def __hash__(self) -> int:
        return hash(type(self).__values__(self))

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name, one in type(self).__fields__.items() if one.shown)
        return f"{type(self).__qualname__}({', '.join(shown)})"


def _completed(made: _RecordType, given: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    if len(given) > len(made.__fields__):
        raise TypeError(f"{made.__name__} has {len(made.__fields__)} fields, not {len(given)}")
    values = dict(zip(made.__fields__, given, strict=False))
    for name, value in named.items():
        if name not in made.__fields__ or name in values:
            raise TypeError(f"{made.__name__} has {'two values for' if name in values else 'no field'} {name!r}")
        values[name] = value
    return [values[name] if name in values else _default(made, name, one) for name, one in made.__fields__.items()]


def _default(made: _RecordType, name: str, one: _Field) -> Any:
    if one.factory is not None:
        return one.factory()
    if one.default is _REQUIRED:
        raise TypeError(f"{made.__name__} needs {name!r}")
    return one.default


def changed(record: R, **fields: Any) -> R:
    """Return another record, like this one but for `fields`."""
    made = type(record)
    values = [*made.__values__(record)]
    # By position: most fields stay, and some records are changed in each call.
    places = made.__places__
    for name, value in fields.items():
        if name not in places:
            raise TypeError(f"{made.__name__} has no field {name!r}")
        values[places[name]] = value
    return made(*values)


def as_dict(record: Record) -> dict[str, Any]:
    """Return the fields by name; their values are the same objects."""
    made = type(record)
    return dict(zip(made.__fields__, made.__values__(record), strict=True))
