"""Waiting for a descriptor in a process that has many."""

from __future__ import annotations

import os
import resource
import select
from contextlib import ExitStack

import pytest

from rye.call.command_channel import ready


def test_a_descriptor_above_1023_can_be_waited_for():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2_100:
        pytest.skip("this process may not open 2,100 files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2_100), hard))
    try:
        with ExitStack() as stack:
            fds = [fd for _ in range(520) for fd in os.pipe()]
            for fd in fds:
                stack.callback(os.close, fd)
            reading, writing = fds[-2:]
            assert reading > 1023
            assert not ready(reading, select.POLLIN, 0)
            os.write(writing, b"x")
            assert ready(reading, select.POLLIN, 0)
            # Control: what it is for.
            with pytest.raises(ValueError, match="filedescriptor out of range"):
                select.select([reading], [], [], 0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
