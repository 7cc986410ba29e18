import itertools
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

import pytest
import trustme

from seawall.contract.errors import ConfigurationError
from seawall.contract.failure import FailureCode, ToolFailed
from seawall.toolkit.http_check import HttpCheck, is_public

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nSet-Cookie: secret\r\n\r\nbody"


class _Server:
    """Answers connections on the loopback address with fixed bytes, and keeps what it was sent."""

    def __init__(self, answer: bytes, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[bytes] = []
        self._answer = answer
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self._speak(connection)

    def _speak(self, connection: socket.socket) -> None:
        try:
            if self._context:
                connection = self._context.wrap_socket(connection, server_side=True)
            with connection:
                self.requests.append(connection.recv(65536))
                connection.sendall(self._answer)
        except OSError:
            return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)


@contextmanager
def _server(answer: bytes, context: ssl.SSLContext | None = None) -> Iterator[_Server]:
    server = _Server(answer, context)
    try:
        yield server
    finally:
        server.close()


def _now() -> float:
    return 0.0


def _check(port: int, **options: Any) -> HttpCheck:
    return HttpCheck(options.pop("now", _now), allow=[f"127.0.0.1:{port}"], **options)


def _resolving(*addresses: str) -> Callable[[str, int], list[tuple[Any, ...]]]:
    return lambda _host, port: [(address, port) for address in addresses]


def test_an_answer_is_told_with_a_few_of_its_headers() -> None:
    ticks = itertools.count(step=0.25)
    with _server(OK) as server:
        check = _check(server.port, now=lambda: next(ticks), timeout_s=100)
        told = check.http_check(
            f"http://127.0.0.1:{server.port}/a b?q=\N{SNOWMAN}".replace(" ", "%20")
        )

    assert told["status"] == 200
    assert (told["reachable"], told["ok"]) == (True, True)
    assert told["headers"] == {"content-type": "text/plain"}
    assert told["latency_ms"] > 0
    assert "redirect" not in told


def test_the_request_is_what_a_server_expects() -> None:
    with _server(OK) as server:
        _check(server.port).http_check(
            f"http://127.0.0.1:{server.port}/a%20b?q=\N{SNOWMAN}#x", "HEAD"
        )

    first, *headers = server.requests[0].decode().split("\r\n")
    assert first == "HEAD /a%20b?q=%E2%98%83 HTTP/1.1"
    assert f"Host: 127.0.0.1:{server.port}" in headers


def test_a_redirect_is_told_and_not_followed() -> None:
    answer = b"HTTP/1.1 302 Found\r\nLocation: /next\r\n\r\n"
    with _server(answer) as server:
        told = _check(server.port).http_check(f"http://127.0.0.1:{server.port}/")

    assert told["redirect"] == f"http://127.0.0.1:{server.port}/next"
    assert len(server.requests) == 1


def test_a_redirect_to_nonsense_is_told_as_it_is() -> None:
    with _server(b"HTTP/1.1 301 M\r\nLocation: http://[bad\r\n\r\n") as server:
        told = _check(server.port).http_check(f"http://127.0.0.1:{server.port}/")

    assert told["redirect"] == "http://[bad"


def test_interim_answers_are_passed_over() -> None:
    with _server(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK) as server:
        told = _check(server.port).http_check(f"http://127.0.0.1:{server.port}/")

    assert told["status"] == 200


def test_a_server_error_is_reachable_but_not_ok() -> None:
    with _server(b"HTTP/1.0 503 Unavailable\r\nRetry-After: 5\r\n\r\n") as server:
        told = _check(server.port).http_check(f"http://127.0.0.1:{server.port}/")

    assert (told["reachable"], told["ok"], told["status"]) == (True, False, 503)
    assert told["headers"] == {"retry-after": "5"}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "no HTTP server"),
        (b"HTTP/1.1 200 OK\r\n", "closed before an answer"),
        (b"", "closed before an answer"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000, "larger than 65536"),
    ],
)
def test_what_answers_badly_is_unreachable(answer: bytes, problem: str) -> None:
    with _server(answer) as server:
        told = _check(server.port).http_check(f"http://127.0.0.1:{server.port}/")

    assert told["reachable"] is False
    assert problem in told["problem"]


def test_a_closed_port_is_a_result() -> None:
    with _server(OK) as server:
        port = server.port

    told = _check(port).http_check(f"http://127.0.0.1:{port}/")

    assert told["problem"] == "the connection was refused"


def test_the_time_of_the_whole_is_bounded_even_if_bytes_keep_coming() -> None:
    ticks = itertools.count(step=3.0)
    with _server(b"HTTP/1.1 200 OK\r\n") as server:
        check = _check(server.port, now=lambda: next(ticks), timeout_s=7)
        told = check.http_check(f"http://127.0.0.1:{server.port}/")

    assert told["problem"] == "no answer within 7 s"


AUTHORITY = trustme.CA()


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert("seawall.test").configure_cert(context)
    return context


def _trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    return context


def test_https_tells_when_the_certificate_expires() -> None:
    trust = _trusting()
    with _server(OK, _server_context()) as server:
        check = HttpCheck(
            _now,
            allow=[f"seawall.test:{server.port}"],
            trust=trust,
            resolve=_resolving("127.0.0.1"),
        )
        told = check.http_check(f"https://seawall.test:{server.port}/")

    assert told["status"] == 200
    assert told["certificate_expires"] > "2026"


def test_a_certificate_that_nobody_vouches_for_is_not_accepted() -> None:
    with _server(OK, _server_context()) as server:
        told = _check(server.port).http_check(f"https://127.0.0.1:{server.port}/")

    assert "certificate is not to be trusted" in told["problem"]
    assert server.requests == []


def test_a_certificate_for_another_name_is_not_accepted() -> None:
    trust = _trusting()
    with _server(OK, _server_context()) as server:
        check = HttpCheck(
            _now, allow=[f"other.test:{server.port}"], trust=trust, resolve=_resolving("127.0.0.1")
        )
        told = check.http_check(f"https://other.test:{server.port}/")

    assert "certificate is not to be trusted" in told["problem"]


def test_an_operator_may_choose_to_trust_without_a_check() -> None:
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust.check_hostname = False
    trust.verify_mode = ssl.CERT_NONE
    with _server(OK, _server_context()) as server:
        told = _check(server.port, trust=trust).http_check(f"https://127.0.0.1:{server.port}/")

    assert told["status"] == 200
    assert "certificate_expires" not in told


def test_https_to_a_plain_server_is_a_problem_of_tls() -> None:
    with _server(b"HTTP/1.1 400 Bad Request\r\n\r\n") as server:
        told = _check(server.port).http_check(f"https://127.0.0.1:{server.port}/")

    assert told["problem"].startswith("tls failed")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "192.0.2.1",
        "198.18.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "233.252.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::127.0.0.1",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "fec0::1",
        "ff02::1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::8.8.8.8",
        "2002:7f00:1::",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:db8::1",
    ],
)
def test_addresses_that_are_not_of_the_open_internet_are_refused(address: str) -> None:
    assert not is_public(ip_address(address))

    with pytest.raises(ToolFailed) as refused:
        HttpCheck(_now, resolve=_resolving(address)).http_check("http://innocent.example/")

    assert refused.value.failure.code is FailureCode.PERMISSION_DENIED
    assert refused.value.failure.reason == "address_refused"


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "64:ff9b::8.8.8.8"])
def test_addresses_of_the_open_internet_are_not_refused(address: str) -> None:
    assert is_public(ip_address(address))


def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    check = HttpCheck(_now, resolve=_resolving("8.8.8.8", "10.0.0.1"))

    with pytest.raises(ToolFailed):
        check.http_check("http://mixed.example/")


@pytest.mark.parametrize("host", ["127.1", "0x7f000001", "2130706433", "localhost", "[::1]"])
def test_other_ways_to_write_the_loopback_address_are_refused(host: str) -> None:
    with pytest.raises(ToolFailed) as refused:
        HttpCheck(_now).http_check(f"http://{host}/")

    assert refused.value.failure.code is FailureCode.PERMISSION_DENIED


def test_a_name_is_resolved_once_and_the_checked_address_is_asked() -> None:
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])
    with _server(OK) as server:
        check = HttpCheck(
            _now,
            allow=["127.0.0.0/8"],
            resolve=lambda _host, port: [(address, port) for address in next(answers)],
        )
        told = check.http_check(f"http://rebind.example:{server.port}/")

    assert told["status"] == 200
    assert next(answers) == ["10.0.0.1"]


def test_the_next_address_is_tried_if_one_does_not_answer() -> None:
    with _server(OK) as server:
        check = HttpCheck(_now, allow=["127.0.0.0/8"], resolve=_resolving("127.0.0.2", "127.0.0.1"))
        told = check.http_check(f"http://two.example:{server.port}/")

    assert told["status"] == 200


def test_an_allowed_host_is_allowed_at_its_port_alone() -> None:
    check = HttpCheck(_now, allow=["internal.example:8080"], resolve=_resolving("10.0.0.1"))

    with pytest.raises(ToolFailed):
        check.http_check("http://internal.example:8081/")


def test_a_name_that_does_not_resolve_is_a_result() -> None:
    def fails(_host: str, _port: int) -> list[tuple[Any, ...]]:
        raise socket.gaierror

    told = HttpCheck(_now, resolve=fails).http_check("http://none.example/")

    assert told["problem"] == "the name none.example does not resolve"
    nothing = HttpCheck(_now, resolve=_resolving()).http_check("http://none.example/")
    assert nothing["problem"] == "the connection failed: the name has no address"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/",
        "file:///etc/passwd",
        "example.com",
        "http://",
        "http://user:password@example.com/",
        "http://example.com:99999/",
        "http://example.com:port/",
        "http://exa mple.com/",
        "http://example.com/\r\nX: y",
        "http://example.com\\@other/",
        "http://[::1/",
        "http://a..b/",
        "http://a(b)/",
        "http://" + "a" * 300 + "/",
        "http://example.com/\ud800",
        "http://example.com/" + "a" * 3000,
    ],
)
def test_a_url_that_could_be_misread_is_refused(url: str) -> None:
    with pytest.raises(ToolFailed) as refused:
        HttpCheck(_now, resolve=_resolving("8.8.8.8")).http_check(url)

    assert refused.value.failure.fields == ("url",)


def test_a_faulty_allow_list_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError) as wrong:
        HttpCheck(_now, allow=["nonsense", "a:b", "10.0.0.0/8", "[::1]:80"])

    assert len(wrong.value.faults) == 2
