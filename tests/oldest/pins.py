"""Which versions are the oldest, read from the extras themselves."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]

ADAPTERS = "edges/adapters"
TESTS = {
    "langchain": [f"{ADAPTERS}/test_langchain.py", f"{ADAPTERS}/test_langchain_questions.py"],
    "pydantic-ai": [f"{ADAPTERS}/test_pydantic_ai.py"],
    "openai-agents": [f"{ADAPTERS}/test_openai_agents.py"],
    "fastmcp": [f"{ADAPTERS}/test_fastmcp.py"],
    "mcp": [f"{ADAPTERS}/test_mcp_server.py"],
}

BESIDE = {"langchain": ["langchain", "langgraph"]}
"""Packages that are no part of an extra, and that its tests need: their bounds are those of `test`.
"""

AND_THEN = {"langchain": ["langgraph-prebuilt==1.0.2"]}
"""What the oldest versions do not say themselves: later ones of these do not work with them."""

BOUND = re.compile(r"(?P<name>[\w-]+)(?:\[[\w,-]+\])?>=(?P<version>[\w.]+)")


def pins(extra: str) -> list[str]:
    """The lower bounds of an extra, as pins."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    beside = [one for one in extras["test"] if _name(one) in BESIDE.get(extra, ())]
    bounds = [BOUND.match(one) for one in (*extras[extra], *beside)]
    found = [f"{bound['name']}=={bound['version']}" for bound in bounds if bound is not None]
    return found + AND_THEN.get(extra, [])


def _name(requirement: str) -> str:
    return re.split(r"[^\w-]", requirement, maxsplit=1)[0]
