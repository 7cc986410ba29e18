"""What foreign code raises becomes a value, and never tells a secret."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress
from time import process_time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.pipeline.foreign import (
    _SECRETS,
    MAX_MESSAGE,
    attempted,
    described,
    first_line,
    guarded,
    guarded_async,
    leaves,
    log_frames,
    masked,
    tell,
    told,
    type_names,
    without,
)
from seawall.pipeline.graced import graced
from seawall.testing import FakeClock

if TYPE_CHECKING:
    import re


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("GET https://x.test/?key=AIzaSyD-0123456789", "AIzaSyD"),
        ("api_key: 'abc-123-def'", "abc-123"),
        ('{"access_token": "t0ken-value"}', "t0ken"),
        ("password = hunter2", "hunter2"),
        ("Authorization: Bearer abc.def-123456", "abc.def"),
        ("Proxy says Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("postgres://alice:s3cret@db/x", "s3cret"),
        ("found sk-live-1234567890ab in it", "1234567890ab"),
        ("ghp_0123456789abcdef0123", "0123456789abcdef"),
        ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig", "eyJzdWIi"),
        ("-----BEGIN RSA PRIVATE KEY-----MIIEow", "MIIEow"),
        ("X-Amz-Signature=0123abcd&x=1", "0123abcd"),
        ("Authorization: Token hunter2-x", "hunter2"),
        ("'Proxy-Authorization': 'Digest user=a, response=hunter2'", "hunter2"),
        ("Cookie: a=b; session=hunter2", "hunter2"),
        ("Set-Cookie: sid=hunter2; Path=/", "hunter2"),
        ("https://hunter2@host.test/x", "hunter2"),
        ("https://user:hun@ter2@host.test/x", "ter2"),
        ('password="a b hunter2"', "hunter2"),
        ("{'password': 'my own hunter2'}", "hunter2"),
        ('{\\"password\\": \\"my own hunter2\\"}', "hunter2"),
        ("passphrase: 'it\\'s hunter2'", "hunter2"),
        ("ewogICJhbGciOiJub25lIn0.ewogICJzdWIiOiJhIn0.c2lnbmF0dXJlMTIz", "c2lnbmF0"),
        ("the API key is 0123456789abcdef0123456789abcdef", "89abcdef"),
        ("0123456789abcdef0123456789abcdef is not a valid token", "89abcdef"),
        ("{'user': 'bob', 'password': b'hunter2'}", "hunter2"),
        ("password=['hunter1', 'hunter2']", "hunter2"),
        ("Config(password=SecretStr('hunter2'), user='bob')", "hunter2"),
        ('{"token":["hunter2"]}', "hunter2"),
        ('{"token": {"value": "hunter2"}}', "hunter2"),
        ("tokens=[0hunter2]", "hunter2"),
        ("auth=('bob', 'hunter2')", "hunter2"),
        ("passwords: hunter2", "hunter2"),
        ("password2=1234", "1234"),
        ("token2=hunter2", "hunter2"),
        ("api_keys: hunter2", "hunter2"),
        ("SMTP_PASS=hunter2", "hunter2"),
        ("user[password]=hunter2", "hunter2"),
        ("token := hunter2", "hunter2"),
        ("auth=hunter", "hunter"),
        ("Bearer: hunter2", "hunter2"),
        ("session=hunter2", "hunter2"),
        ("jwt=hunter", "hunter"),
        ("[('authorization', 'hunter2'), ('accept', 'x')]", "hunter2"),
        ('["Cookie", "sid=hunter2"]', "hunter2"),
        ("(b'x-api-key', b'hunter2')", "hunter2"),
        ("mysql --password hunter2 -h db", "hunter2"),
        ("run --api-key 'my hunter2' now", "hunter2"),
        ("postgres://u:/hunter2@db", "hunter2"),
        ("https:\\/\\/u:hunter2@db", "hunter2"),
        ("gone: postgres://u:hunter2", "hunter2"),
        ("ASIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
        ("ghu_0123456789abcdef0123", "0123456789abcdef"),
        ("ghr_0123456789abcdef0123", "0123456789abcdef"),
        ("xapp-1-A0-0123456789abc", "0123456789abc"),
        ("xoxe.xoxp-1-0123456789abc", "0123456789abc"),
        ("SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuv", "ghijkl"),
        ("whsec_abcdefghijkl", "abcdefghijkl"),
        ("ya29.abcdefghijkl", "abcdefghijkl"),
        ("https://hooks.slack.com/services/T0/B0/abcdef", "abcdef"),
        ("GET /cb?code=0123456789abcdef0123 HTTP/1.1", "9abcdef"),
        ("https://app.test/cb?state=x&code=4/0AX4XfWh-Zb_x9Q&scope=a", "AX4XfWh"),
        ("/cb?code=0.AXoA_5b2c.AgABAAIAAAA", "AgABAA"),
        ("/CB?CODE=6a7f2c1e-52b1-4a0e-9c1d-1f2e3d4c5b6a", "52b1"),
        ("-----BEGIN EC PRIVATE KEY-----\nMIIEow\n-----END EC PRIVATE KEY-----", "MIIEow"),
    ],
)
def test_what_looks_like_a_secret_is_masked(text: str, hidden: str) -> None:
    assert hidden in text
    assert hidden not in masked(text)


PIECES = [
    *("key", "token", "secret", "password", "passwd", "passphrase", "passcode", "pass", "pwd"),
    *("signature", "sig", "credential", "session", "auth", "authorization", "cookie", "jwt"),
    *("bearer", "basic", "sk", "ghp", "github_pat", "xoxb", "npm", "AKIA", "ASIA", "AIza", "SG."),
    *(
        "eyJ",
        "ew",
        "ya29.",
        "-----BEGIN RSA PRIVATE KEY-----",
        "?code=",
        "api",
        "set",
        "x",
        "s",
        "id",
        "Id",
    ),
    *("a1", "0", "12", "abcdefgh", "A1B2C3D4E5F6G7H8", "0123456789abcdef0123456789abcdef", "the"),
    *("=", ":", ":=", "=>", "->", "%3D", "%3a", "://", ":\\/\\/", "@", "/", ".", ",", "-", "_"),
    *("--", "'", '"', "\\", "[", "]", "(", ")", "{", "}", " ", " ", " ", "\n", "hooks.slack.com"),
]


def test_no_secret_is_missed_by_the_look_that_spares_most_texts_the_pattern() -> None:
    chance = random.Random(7)
    for _ in range(20_000):
        pieces = chance.choices(PIECES, k=chance.randint(2, 12))
        text = "".join(piece.upper() if chance.random() < 0.1 else piece for piece in pieces)

        # A text that is not all ASCII is never spared.
        assert masked(text) == masked(f"é {text}").removeprefix("é ")


@pytest.mark.parametrize(
    "beginning",
    [
        *("sk-", "pk_", "rk-", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "glpat-"),
        *("gldt-", "xapp-", "hf_", "npm_", "pypi-", "whsec_", "shpat_", "dop_v1_", "xoxb-"),
        *("AKIA", "akia", "AIza", "aiza", "ya29.", "YA29.", "Bearer ", "basic "),
    ],
)
def test_a_token_is_known_by_how_it_begins(beginning: str) -> None:
    for text in (f"{beginning}0123456789AB", f"not {beginning.upper()}0123456789AB, it says"):
        assert "56789AB" not in masked(text)


@pytest.mark.parametrize(
    "text",
    [
        "no such key",
        "the keyboard: a story",
        "token expired",
        "user:password rules",
        "5 keys",
        "ssh://git@host.test/x",
        "commit 0123456789abcdef0123456789abcdef01234567 is gone",
        "authorization failed",
        "tokens: 12 of 100",
        "tokens=12/100",
        "max_tokens=4096",
        "max_tokens: 4,096 is too many",
        "{'prompt_tokens': 12, 'total_tokens': 30}",
        "token count: 5",
        "key1=5",
        "pass=1 fail=2",
        "bypass=true",
        "session=3",
        "session: closed",
        "auth failed: no route",
        "asiapacificregional",
        "missing keys: name, age",
        "missing fields: ['token', 'name']",
        "argument --token is required",
        "unexpected token { at line 3",
        "http://host:8080/path",
        "http://host:8080/people/bob@x.test",
        "cannot reach http://host:8080",
        "cannot reach http://host:8080.",
        "cannot reach http://host:8080?page=1",
        "cannot reach http://[::1]:8080",
        "cannot reach redis+cluster://one:7000,two:7000",
        "session: abcdefghijklmnopqrstuvwxyz",
        "the password hunter2 is wrong",
        "exit code=0123456789abcdef0123",
        "GET /search?code=404 failed",
        "GET /countries?q=a&code=en-US failed",
        "/help?code=ERR_CONNECTION_REFUSED_404",
        "/shop?code=product-not-found-2024&page=2",
        "/parts?code=12345678901234567890",
        "/plan?code=abcdefghijklmnopqrst",
        "what is ?code=<the code of your account, with 16 signs>",
    ],
)
def test_plain_words_are_left_alone(text: str) -> None:
    assert masked(text) == text


_PARTS = [
    "key=abc",
    "token:",
    "secret=1",
    "passwd=x",
    "password",
    "pwd=",
    "passphrase",
    "signature",
    "sig=0",
    "credentials",
    "session-id=9",
    "authorization:",
    "proxy-Authorization=",
    "cookie:",
    "set-cookie2=",
    "Bearer",
    "basic",
    "abcdef0123456789",
    "0123456789abcdef0123456789abcdef01",
    "://a:b@c",
    "https://x@host",
    "git@",
    "sk-12345678",
    "rk_abcdefgh",
    "ghp_12345678",
    "gho-12345678",
    "github_pat_12345678",
    "glpat-12345678",
    "xoxb-12345678",
    "hf_12345678",
    "npm-12345678",
    "pypi_12345678",
    "AKIA0123456789AB",
    "AIzaABCDEFGHIJ",
    "eyJabcdefgh.abcdefghijklmnop",
    "ewabcdefghijklmnop",
    ".abcdefghijklmnop",
    "ASIA0123456789AB",
    "ghu_12345678",
    "xapp-12345678",
    "xoxe.12345678",
    "whsec_12345678",
    "SG.abcdefghijklmnop.abcdefghijklmnop",
    "ya29.abcdefghij",
    "://hooks.slack.com/services/T0/B0",
    "gldt-12345678",
    "shpat_12345678",
    "dop_v1_12345678",
    "passwords: x",
    "passcode2=x",
    "tokens=[x1]",
    "secrets: b'x'",
    "api_keys=Name('x')",
    "token2",
    "auth=x",
    "session",
    "jwt=x",
    "a_pass=x",
    "--password x",
    "('authorization', 'x')",
    "(b'api-key', b'x')",
    "https:\\/\\/u:p@h",
    "://u:/p@h",
    "://u:rest",
    "-----BEGIN",
    "KEY",
    "PRIVATE KEY-----",
    "?code=0123456789abcdef",
    "&code=a1",
    "=",
    ":",
    "is the",
    "failed",
]


@pytest.mark.parametrize("text", _PARTS)
def test_the_quick_look_misses_nothing_that_the_pattern_finds(text: str) -> None:
    assert masked(text) == _SECRETS.sub(_kept_part, text)


@settings(deadline=None)
@given(st.lists(st.sampled_from(_PARTS) | st.text(max_size=4), max_size=8), st.booleans())
def test_the_quick_look_misses_nothing_in_any_company(parts: list[str], apart: bool) -> None:
    text = (" " if apart else "").join(parts)

    for said in (text, text.upper(), text.lower()):
        assert masked(said) == _SECRETS.sub(_kept_part, said)


_REPEATED = [
    *("key", "key-", "key ", "key1", "key   ", "a1-", "a1.", " a1", "a1" * 16 + " ab ", "-"),
    *("password='", "password='\\", "tokens=[", "token=a(", "token=a.", "tokens=12,", "session=a"),
    *("://", "://a:", "://a", "://a:/", ":\\/\\/a:", "@", "--key ", "('key',", "auth=(", "auth"),
    *("eyJaaaaaaaa.", "ewaaaaaaaaaaaaaaaaaaa", "SG.aaaaaaaaaaaaaaaaaaaa", "-----BEGIN A", "key["),
    *("?code=", "&code=a1", "&code=a-", "&code=a-1_", "?", "?code=" + "a" * 120),
    "?code=" + "1" * 40,
]


@pytest.mark.parametrize("part", _REPEATED)
@pytest.mark.parametrize("start", ["", "key=", "://a:", "tokens=['"])
def test_time_grows_with_the_length_of_a_hostile_text_and_no_faster(start: str, part: str) -> None:
    masked(start + part)
    hostile = (start + part * 100_000)[:100_000]
    began = process_time()

    masked(hostile)

    assert process_time() - began < 0.5  # a tenth of that; one that backtracks takes minutes


def _kept_part(found: re.Match[str]) -> str:
    return f"{found.group(found.lastgroup) if found.lastgroup else ''}…"


class Talkative(Exception):  # noqa: N818  # what it does is what matters
    """Says whatever it was made with; raises it if it is an exception."""

    def __init__(self, said: Any) -> None:
        super().__init__()
        self.said = said

    def __str__(self) -> str:
        if isinstance(self.said, Exception):
            raise self.said
        text: str = self.said
        return text


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("one\ntwo", "one"),
        ("  \n\n padded \n", "padded"),
        ("", ""),
        ("a\ud800b", "a?b"),
        (ValueError("no text"), ""),
        ("x" * 5_000_000, "x" * (MAX_MESSAGE - 1) + "…"),
        ("token=abcdef rest", "token=… rest"),
    ],
)
def test_of_a_message_its_first_line_is_said(said: Any, line: str) -> None:
    assert first_line(Talkative(said)) == line


def test_a_secret_is_not_shown_because_a_bound_cuts_it_in_two() -> None:
    said = "x" * (MAX_MESSAGE - 10) + " key=abcdefghijklmnopqrstuvwxyz"

    assert "abc" not in first_line(Talkative(said))


@pytest.mark.parametrize(
    "secret",
    [
        "postgres://admin:hunter2xxxxxxxxxxxxxxxxxxxxxxxx@db",
        "postgres://admin:1234567890123456789012345678901234@db",
        "https://hunter2xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx@db",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig",
    ],
)
def test_no_part_of_a_secret_is_shown_wherever_a_text_is_cut(secret: str) -> None:
    for before in range(4 * MAX_MESSAGE - len(secret) - 5, 4 * MAX_MESSAGE):
        filler = "token=" + "a" * (before - 7)
        said = first_line(Talkative(f"{filler} {secret} and more"))

        assert said.removeprefix("token=… ") in {"…", "…://…", "… …", *_whole(secret)}


def _whole(secret: str) -> set[str]:
    return {masked(secret), f"{masked(secret)} …", f"{masked(secret)} and …"}


def test_an_address_that_is_cut_inside_a_long_word_is_shown_up_to_its_scheme() -> None:
    said = "token='" + "a" * 1000 + "',x://" + "b" * 2000

    assert first_line(Talkative(said)) == "token=…,x://…"


def nested(levels: int, error: Exception) -> Exception:
    for _ in range(levels):
        error = ExceptionGroup("group", [error])
    return error


def test_the_leaves_of_groups_are_found_within_a_bound() -> None:
    error = OSError("inner")
    many = ExceptionGroup("many", [ValueError(str(n)) for n in range(100)])

    assert leaves(error) == [error]
    assert leaves(nested(3, error)) == [error]
    assert isinstance(leaves(nested(20, error))[0], ExceptionGroup)
    assert len(leaves(ExceptionGroup("all", [many, many]))) == 16


def test_an_error_is_said_by_type_and_first_line() -> None:
    assert described(OSError("gone")) == "OSError: gone"
    assert described(OSError()) == "OSError"
    group = ExceptionGroup("g", [ValueError("a"), nested(1, KeyError("b"))])
    assert described(group) == "ValueError: a; KeyError: 'b'"


def test_however_much_is_said_it_stays_bounded() -> None:
    group = ExceptionGroup("g", [Talkative("x" * 5_000_000) for _ in range(50)])

    assert len(described(group)) == 2 * MAX_MESSAGE


def test_types_are_named_outermost_first_with_causes_and_without_repeats() -> None:
    error = RuntimeError("outer")
    error.__cause__ = OSError("middle")
    error.__cause__.__cause__ = OSError("inner")

    assert type_names(error) == ("RuntimeError", "OSError")
    assert type_names(nested(1, KeyError())) == ("ExceptionGroup", "KeyError")


def test_a_chain_of_causes_without_end_is_named_within_a_bound() -> None:
    error = RuntimeError("outer")
    kinds = [type(f"E{n}", (Exception,), {}) for n in range(50)]
    current: BaseException = error
    for kind in kinds:
        current.__cause__ = kind()
        current = current.__cause__

    assert len(type_names(error)) == 16


def test_the_log_has_types_and_frames_and_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(OSError, match="denied") as raised:
        raise OSError("key=abcdef123 denied")

    log_frames("a tool raised", raised.value)

    assert "a tool raised: OSError\n" in caplog.text
    assert "denied" not in caplog.text
    assert "in test_the_log_has_types_and_frames_and_no_secret" in caplog.text
    assert "abcdef123" not in caplog.text


def test_what_an_error_says_is_logged_at_debug_without_secrets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="seawall")

    log_frames("a tool raised", OSError("hunter2 was denied, key=abcdef123"), secrets=["hunter2"])

    assert "OSError: … was denied, key=…" in caplog.text


@pytest.mark.parametrize(
    ("text", "secret", "cleared"),
    [
        ("login with hunter2 and hunter2", "hunter2", "login with … and …"),
        (repr("a'b\n\"c"), "a'b\n\"c", "'…'"),
        ("only the first\\", "only the first\nand more", "…"),
        ("x=p%40ss%2Fw", "p@ss/w", "x=…"),
        ("caf\\u00e9-bar", "café-bar", "…"),
        ("a 7 of 77", "7", "a … of 77"),
        ("int: 'abcdefghijklmnop", "abcdefghijklmnopqrstuvwxyz", "int: '…"),
        ("as it is", "", "as it is"),
    ],
)
def test_a_known_secret_is_replaced_however_it_is_written(
    text: str, secret: str, cleared: str
) -> None:
    assert without(text, [secret]) == cleared


class Odd(BaseException):
    """No `Exception`."""


class Shy(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]  # hostile on purpose
        raise Odd


class ShyError(Exception, metaclass=Shy):
    pass


class ShyGroup(ExceptionGroup[Exception]):
    @property
    def exceptions(self) -> Any:
        raise Odd


class Hostile(Exception):  # noqa: N818  # what it does is what matters
    def __str__(self) -> str:
        raise Odd

    @property
    def __cause__(self) -> Any:  # type: ignore[override]  # hostile on purpose
        raise Odd

    @property  # type: ignore[misc]  # hostile on purpose
    def __class__(self) -> Any:
        raise Odd


@pytest.mark.parametrize(
    ("error", "said", "names"),
    [
        (ShyError("x"), "ShyError: x", ("ShyError",)),
        (ShyGroup("g", [OSError("x")]), "OSError: x", ("ShyGroup", "OSError")),
        (Hostile(), "Hostile", ("Hostile",)),
    ],
    ids=["name", "exceptions", "all"],
)
def test_an_error_that_fails_when_it_is_looked_at_is_named(
    error: BaseException, said: str, names: tuple[str, ...]
) -> None:
    assert described(error) == said
    assert type_names(error) == names
    log_frames("it is logged", error)


async def test_what_is_no_exception_by_class_is_caught_too() -> None:
    def odd(*_: Any) -> str:
        raise Odd

    tell([odd], "news")
    assert told([odd], "news") == 1
    assert guarded("w", odd, lambda error: type(error).__name__) == "Odd"
    assert await guarded_async("w", odd, lambda error: type(error).__name__) == "Odd"


def test_what_is_not_logged_is_not_prepared(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="seawall")

    log_frames("quiet", Talkative(AssertionError("asked")))

    assert not caplog.text


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), GeneratorExit()])
def test_a_listener_that_raises_harms_no_other(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []

    def broken(*news: Any) -> None:
        raise error

    tell([broken, heard.append], "news")
    failed = told([broken, lambda *news: heard.append(news)], 1, 2)

    assert heard == ["news", (1, 2)]
    assert failed == 1
    assert caplog.text.count("a listener failed") == 2


def test_a_listener_cannot_swallow_an_interrupt() -> None:
    def interrupted(news: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tell([interrupted], "news")


async def test_guarded_code_gives_its_value_or_what_is_said_instead() -> None:
    def broken() -> str:
        raise SystemExit(1)

    async def later() -> str:
        return "value"

    async def broken_later() -> str:
        raise ValueError("x")

    assert guarded("w", lambda: "value", str) == "value"
    assert guarded("w", broken, lambda error: type(error).__name__) == "SystemExit"
    assert await guarded_async("w", lambda: "value", str) == "value"
    assert await guarded_async("w", later, str) == "value"
    assert await guarded_async("w", broken_later, str) == "x"


def exits(*_: Any) -> Any:
    raise GeneratorExit


async def test_a_generator_exit_of_plain_code_is_its_own() -> None:
    class UnsayableError(Exception):
        __str__ = exits

    assert guarded("w", exits, lambda _: "instead") == "instead"
    assert attempted(exits, "instead") == "instead"
    assert first_line(UnsayableError()) == ""
    assert await guarded_async("w", exits, lambda _: "instead") == "instead"
    assert await graced(lambda: "value", FakeClock(), 1, 1) == "value"
    with pytest.raises(RuntimeError, match="GeneratorExit"):
        await graced(exits, FakeClock(), 1, 1)


async def test_guarded_code_is_closed_while_it_waits() -> None:
    said: list[str] = []
    waiting = guarded_async("w", asyncio.Event().wait, lambda _: said.append("instead"))
    waiting.send(None)

    waiting.close()

    assert not said


@pytest.mark.parametrize("raises", [False, True])
async def test_a_cancel_that_guarded_code_swallows_passes_through_all_the_same(
    raises: bool,
) -> None:
    never = asyncio.Event()

    async def swallows() -> str:
        try:
            await never.wait()
        except asyncio.CancelledError:
            if raises:
                raise ValueError("its own") from None
        return "value"

    task = asyncio.create_task(guarded_async("w", swallows, str))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_scopes_of_guarded_code_may_take_their_cancel_back() -> None:
    async def scoped() -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        return "value"

    assert await guarded_async("w", scoped, str) == "value"
