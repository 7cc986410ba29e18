"""Nothing passes for a path, a host or a number that it is not."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from seawall.layers.argument_values import (
    HostPattern,
    PathPattern,
    Unclear,
    exact_number,
    host_of,
    path_of,
)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        (1e3, Fraction(1000)),
        ("100.10", Fraction(1001, 10)),
        ("-0.5", Fraction(-1, 2)),
        (10**40 + 1, Fraction(10**40 + 1)),
    ],
)
def test_numbers_are_read_as_they_are_written(value: Any, number: Fraction) -> None:
    assert exact_number(value) == number


@pytest.mark.parametrize(
    "value",
    [True, None, [], "", "1e3", "0x10", " 1", "1 ", "١", "1_000", "+1", float("nan"), float("inf")],
)
def test_what_may_be_another_number_elsewhere_is_unclear(value: Any) -> None:
    assert exact_number(value) is Unclear


@pytest.mark.parametrize(
    ("value", "strictly", "loosely"),
    [
        ("/srv/data", True, True),
        ("/srv/data/", True, True),
        ("/srv//data/./a", True, True),
        ("//srv/data/a", True, True),
        ("/srv/database", False, False),
        ("/srv", False, False),
        ("/etc/passwd", False, False),
        ("/SRV/Data/a", False, True),
        ("/srv/data./a", False, True),
        ("/srv/ｄａｔａ/a", False, True),
    ],
)
def test_a_path_is_below_a_folder_by_whole_parts(value: str, strictly: bool, loosely: bool) -> None:
    folder, path = PathPattern("/srv/data"), path_of(value)

    assert folder.has(path, strictly=True) is strictly
    assert folder.has(path, strictly=False) is loosely


@pytest.mark.parametrize(
    "value",
    [
        "",
        "srv/data",
        "./srv/data",
        "~/data",
        "/srv/data/../../etc/passwd",
        "/srv/data/..",
        "/../srv/data",
        "C:\\srv\\data",
        "/srv/data\\..\\x",
        "/srv/data\0/x",
        "/srv/data\n",
        "file:///srv/data",
        "/" + "a" * 9_000,
        5,
        None,
        ["/srv/data"],
    ],
)
def test_what_may_lead_elsewhere_is_unclear(value: Any) -> None:
    assert path_of(value) is Unclear


def test_the_root_has_everything() -> None:
    assert PathPattern("/").has(path_of("/etc/passwd"), strictly=True)


@pytest.mark.parametrize(
    ("value", "name", "port"),
    [
        ("https://example.org/a?b#c", "example.org", None),
        ("HTTPS://EXAMPLE.ORG", "example.org", None),
        ("https://example.org.:443/", "example.org", None),
        ("http://example.org:80", "example.org", None),
        ("http://example.org:443", "example.org", 443),
        ("example.org", "example.org", None),
        ("example.org:8080/x", "example.org", 8080),
        ("//example.org/x", "example.org", None),
        ("https://example.org@evil.test/", "evil.test", None),
        ("https://user:pass@example.org/", "example.org", None),
        ("https://bücher.example/", "xn--bcher-kva.example", None),
        ("https://XN--BCHER-KVA.example/", "xn--bcher-kva.example", None),
        ("http://127.0.0.1:8080", "127.0.0.1", 8080),
        ("http://[::1]:9/", "::1", 9),
        ("http://[::ffff:10.0.0.1]/", "10.0.0.1", None),
        ("ws://a.b", "a.b", None),
        ("localhost", "localhost", None),
    ],
)
def test_a_host_is_read_as_name_servers_have_it(value: str, name: str, port: int | None) -> None:
    host = host_of(value)

    assert (host.name, host.port) == (name, port)


@pytest.mark.parametrize(
    "value",
    [
        "",
        5,
        None,
        "https://",
        "https:example.org",
        "https:/example.org",
        "javascript:alert(1)",
        "https://evil.test\\@example.org/",
        "https://example.org\\.evil.test/",
        "https://exa mple.org/",
        "https://example.org\t/",
        "https://a@b@example.org/",
        "https://example%2eorg/",
        "https://example.org:99999/",
        "https://example..org/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0x7f000001/",
        "http://127.1/",
        "http://0177.0.0.1/",
        "http://[fe80::1%25eth0]/",
        "http://[::1/",
        "https://-example.org/",
        "https://" + "a" * 300 + "/",
        "x" * 9_000,
    ],
)
def test_what_may_lead_to_another_host_is_unclear(value: Any) -> None:
    assert host_of(value) is Unclear


@pytest.mark.parametrize(
    ("pattern", "value", "strictly", "loosely"),
    [
        ("example.org", "https://example.org/", True, True),
        ("example.org", "https://example.org:8443/", False, True),
        ("example.org:8443", "https://example.org:8443/", True, True),
        ("example.org:8443", "https://example.org/", False, True),
        ("Example.ORG", "https://example.org/", True, True),
        ("example.org", "https://a.example.org/", False, False),
        ("*.example.org", "https://a.example.org/", True, True),
        ("*.example.org", "https://example.org/", False, False),
        ("*.example.org", "https://evilexample.org/", False, False),
        ("bücher.example", "https://xn--bcher-kva.example/", True, True),
        ("10.0.0.0/8", "http://10.1.2.3/", True, True),
        ("10.0.0.0/8", "http://[::ffff:10.1.2.3]/", True, True),
        ("10.0.0.0/8", "http://11.1.2.3/", False, False),
        ("10.0.0.0/8", "http://ten.example/", False, False),
        ("127.0.0.1", "http://127.0.0.1/", True, True),
        ("fd00::/8", "http://[fd00::1]:80/", True, True),
    ],
)
def test_a_host_fits_a_pattern(pattern: str, value: str, strictly: bool, loosely: bool) -> None:
    host = host_of(value)

    assert HostPattern(pattern).has(host, strictly=True) is strictly
    assert HostPattern(pattern).has(host, strictly=False) is loosely


@pytest.mark.parametrize("text", ["", "*", "a b", "https://example.org/x", "a@b", "10.0.0.1/8"])
def test_what_is_no_pattern_of_hosts_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="is '"):
        HostPattern(text)
