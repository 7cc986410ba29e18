from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from seawall import ConfigurationError, Policies
from seawall.policy.addresses import address_rule
from seawall.policy.settings import HttpCheckSettings


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("10.1.0.0/16", ip_network("10.1.0.0/16")),
        ("10.1.2.3/16", ip_network("10.1.0.0/16")),
        ("::1", ip_network("::1/128")),
        ("Localhost:8080", ("localhost", 8080)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_a_rule_is_a_network_or_a_host_with_its_port(rule: str, found: Any) -> None:
    assert address_rule(rule) == found


@pytest.mark.parametrize("rule", ["", "localhost", "localhost:", ":80", "a:0", "a:65536", "a:8٣"])
def test_anything_else_is_refused(rule: str) -> None:
    with pytest.raises(ValueError, match="neither host:port nor a network"):
        address_rule(rule)
    with pytest.raises(ConfigurationError, match="allow: "):
        HttpCheckSettings(allow=(rule,))


def test_a_policy_file_opens_addresses(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('[http_check]\nallow = ["127.0.0.1:8080", "10.0.0.0/8"]\n')

    assert Policies.load(file).http_check.allow == ("127.0.0.1:8080", "10.0.0.0/8")


def test_a_faulty_address_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('[http_check]\nallow = ["127.0.0.1:8080", "everything"]\n')

    with pytest.raises(ConfigurationError) as caught:
        Policies.load(file)

    (fault,) = caught.value.faults
    assert (fault.line, fault.key) == (2, "http_check.allow")
    assert "'everything' is neither host:port nor a network" in fault.message
