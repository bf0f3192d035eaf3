"""Short addresses: spelled and read the same way, and never taken for an ID."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.line_ids import addresses

EPOCHS = st.one_of(st.integers(1, 400), st.integers(1, 16**7 - 1))
NUMBERS = st.one_of(st.integers(1, 2_000), st.integers(1, 10**7))


@given(NUMBERS, EPOCHS, NUMBERS, EPOCHS)
def test_two_lines_never_share_an_address(number, epoch, other, later):
    assert (addresses.spelled(number, epoch) == addresses.spelled(other, later)) == ((number, epoch) == (other, later))


@given(NUMBERS, EPOCHS, st.from_regex(r"[0-9a-f]{6,12}", fullmatch=True))
def test_what_is_spelled_is_read_back_and_is_no_id(number, epoch, line_id):
    name = addresses.spelled(number, epoch)
    assert addresses.parsed(name) == addresses.parsed(f" {name.upper()} ") == name
    assert addresses.number_of(name) == (number, epoch)
    assert not re.fullmatch(r"[0-9a-f]{6,}", name)
    assert addresses.parsed(line_id) is None


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        *((12, "12"), (12.0, "12"), ("012", "12"), ("12g", "12"), (123456, "123456g")),
        *((True, None), (0, None), (-3, None), ("", None)),
    ],
)
def test_what_callers_write(given, meant):
    assert addresses.parsed(given) == meant
