"""The predicate for public addresses against the ranges that the standard library gets wrong, and the user's exceptions."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.web import addresses

NOT_PUBLIC = [
    *["0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "168.63.129.16", "169.254.169.254", "172.31.255.255"],
    *["192.0.0.8", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.9", "224.0.0.1"],
    *["239.255.255.250", "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1"],
    *["64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "5f00::1", "fc00::1"],
    *["fd00::1", "fe80::1", "fec0::1", "ff02::1"],
]
PUBLIC = ("1.1.1.1", "8.8.8.8", "93.184.215.14", "2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::808:808")


@pytest.mark.parametrize("text", [*NOT_PUBLIC, *PUBLIC])
def test_which_addresses_are_public(text):
    assert (addresses.not_public(ipaddress.ip_address(text)) is None) == (text in PUBLIC)
    assert sum(ipaddress.ip_address(one).is_global for one in NOT_PUBLIC) >= 3, "control: Python calls some of them global"


@given(st.ip_addresses())
def test_what_is_public_is_global_to_the_standard_library_too(address):
    if addresses.not_public(address) is None and getattr(address, "ipv4_mapped", None) is None:
        assert address.is_global or address in ipaddress.ip_network("64:ff9b::/96")


def test_a_host_is_allowed_by_name_by_port_or_by_domain():
    allowed = addresses.Allowed.of(["docs.internal", "127.0.0.1:8080", "*.example.org", "[::1]:80"])
    held = ("DOCS.internal", 1), ("127.0.0.1", 8080), ("a.b.example.org", 443), ("::1", 80)
    assert all(allowed.holds(*one) for one in held)
    assert not any(allowed.holds(*one) for one in (("127.0.0.1", 8081), ("example.org", 443), ("evilexample.org", 443)))
