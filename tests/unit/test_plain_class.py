"""Records behave as frozen dataclasses do, and cost a small part of what those cost to make."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as some

import rye
from rye.plain_class import Record, as_dict, changed, field


class Place(Record):
    kind: ClassVar[str] = "place"
    path: str
    line: int = 1
    marks: list[str] = field(factory=list)


class Secret(Place):
    key: str = field(default="", shown=False)

    def __post_init__(self) -> None:
        if self.key == "bad":
            raise ValueError("bad key")

    @property
    def loud(self) -> str:
        return super().__repr__().upper()


class Tally(Record, frozen=False):
    count: int = 0


class Nothing(Record):
    pass


@dataclasses.dataclass(frozen=True, slots=True)
class Plain:
    path: str
    line: int = 1
    marks: list[str] = dataclasses.field(default_factory=list)


VALUES = some.one_of(some.integers(), some.text(), some.lists(some.integers(), max_size=2))


@given(some.lists(VALUES, max_size=4), some.dictionaries(some.sampled_from(["path", "line", "marks", "other"]), VALUES))
def test_a_record_takes_and_refuses_what_a_dataclass_does(positional, named):
    def made(cls):
        try:
            return cls(*positional, **named)
        except TypeError:
            return None

    record, plain = made(Place), made(Plain)
    assert (record is None) == (plain is None)
    if record is not None:
        assert as_dict(record) == dataclasses.asdict(plain)
        assert repr(record) == repr(plain).replace("Plain", "Place")


@given(some.text(), some.integers(), some.text(), some.integers())
def test_records_are_equal_and_hash_alike_exactly_if_their_fields_are_equal(path, line, other_path, other_line):
    one, other = Place(path, line, ()), Place(other_path, other_line, ())
    assert (one == other) == ((path, line) == (other_path, other_line))
    assert one == Place(path, line, ())
    assert hash(one) == hash(Place(path, line, ()))
    assert one != Secret(path, line, ())


def test_a_frozen_record_cannot_be_changed_and_an_open_one_in_its_fields_alone():
    place, tally = Place("a"), Tally()
    for change in (lambda: setattr(place, "line", 2), lambda: delattr(place, "line"), lambda: setattr(place, "new", 2)):
        with pytest.raises(AttributeError):
            change()
    assert place == Place("a")
    place.marks.append("x")
    assert Place("b").marks == [], "defaults are made anew"
    tally.count += 2
    assert tally == Tally(2)
    with pytest.raises(AttributeError):
        tally.other = 1
    with pytest.raises(TypeError):
        hash(tally)


def test_a_hidden_field_is_not_in_repr():
    secret = Secret("a", key="hunter2")
    assert "hunter2" not in repr(secret)
    assert "key" not in repr(secret)
    assert secret.key == "hunter2"
    assert secret.loud.startswith("SECRET(PATH=")


def test_changed_and_copied_it_is_another_record_whose_fields_are_checked():
    place = Place("a", 3, ["m"])
    assert changed(place, line=4) == Place("a", 4, ["m"])
    assert place.line == 3
    for again in (copy.copy(place), copy.deepcopy(place), pickle.loads(pickle.dumps(place))):
        assert again == place
    with pytest.raises(TypeError):
        changed(place, lines=4)
    for make in (lambda: Secret("a", key="bad"), lambda: changed(Secret("a"), key="bad")):
        with pytest.raises(ValueError, match="bad key"):
            make()


def test_a_record_has_no_dictionary_and_knows_its_order():
    assert not hasattr(Place("a"), "__dict__")
    match Place("a", 7):
        case Place(path, line):
            assert (path, line) == ("a", 7)
    assert Nothing() == Nothing()
    assert repr(Nothing()) == "Nothing()"
    assert Place.kind == "place"


def test_records_need_no_dataclasses():
    code = "import sys, rye.plain_class; print([name for name in ('dataclasses', 'inspect') if name in sys.modules])"
    words = [sys.executable, "-S", "-c", code]
    said = subprocess.run(words, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(rye.__path__[0] + "/..")})
    assert said.stdout == "[]\n"
