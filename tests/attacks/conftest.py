"""What the tests of crashes share."""

from __future__ import annotations

import os
import random

import pytest

from support.faults import template


@pytest.fixture
def made(tmp_path):
    """A process that every killed call is forked from."""
    with template(tmp_path) as one:
        yield one


@pytest.fixture
def rng():
    """Random numbers; `RYE_TEST_SEED` repeats those of a run that printed its seed."""
    seed = int(os.environ.get("RYE_TEST_SEED") or random.randrange(1 << 32))
    print("seed", seed)
    return random.Random(seed)
