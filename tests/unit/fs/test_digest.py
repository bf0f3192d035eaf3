"""Digests without OpenSSL are those of the standard library, at every size; a short command does not load OpenSSL."""

from __future__ import annotations

import hashlib
import hmac
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.fs import digest

SIZES = [0, 1, 55, 56, 63, 64, 65, 119, 128, 1_000, digest.MUCH - 1, digest.MUCH, digest.MUCH + 1, 1 << 20]


@pytest.mark.parametrize("size", SIZES)
def test_digests_of_every_size_are_the_standard_librarys(size):
    data = os.urandom(size)
    assert digest.sha256(data).hexdigest() == digest.hexdigest(data) == hashlib.sha256(data).hexdigest()
    assert digest.sha256_of_much(data).digest() == hashlib.sha256(data).digest()


@given(st.binary(max_size=64), st.lists(st.binary(max_size=300), max_size=4))
def test_seals_are_the_standard_librarys_hmac(key, parts):
    assert digest.hmac_hexdigest(key, *parts) == hmac.new(key, b"".join(parts), "sha256").hexdigest()


@pytest.mark.parametrize("size", SIZES)
def test_seals_of_every_size(size):
    key, data = os.urandom(32), os.urandom(size)
    assert digest.hmac_hexdigest(key, b"label\0", memoryview(data)) == hmac.new(key, b"label\0" + data, "sha256").hexdigest()


def test_a_key_that_would_have_to_be_hashed_is_refused():
    with pytest.raises(ValueError, match="too long"):
        digest.hmac_hexdigest(bytes(65), b"")


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="CPython's own hashes")
def test_short_digests_load_no_openssl():
    code = "import sys; from rye.fs import digest; digest.hexdigest(b'x'); print('_hashlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
