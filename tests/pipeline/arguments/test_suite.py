"""The official JSON Schema Test Suite, all required cases of the five drafts."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.found import lacking

from seawall.pipeline.arguments.compiled import compile_schema

ARCHIVE = "jsonschema-4.26.0"
HOST = "http://localhost:1234/"
DRAFTS = {
    "draft4": ("draft-04", 610),
    "draft6": ("draft-06", 829),
    "draft7": ("draft-07", 913),
    "draft2019-09": ("2019-09", 1227),
    "draft2020-12": ("2020-12", 1257),
}


@pytest.fixture(scope="module")
def suite(request: pytest.FixtureRequest) -> Path:
    named = os.environ.get("JSON_SCHEMA_SUITE")
    if named:
        return Path(named)
    cache = request.config.cache
    assert cache is not None
    folder = cache.mkdir("json-schema-tests")
    found = folder / ARCHIVE
    if not (found / "tests").is_dir():
        fetch(found)
    return found


def fetch(folder: Path) -> None:
    """Get the suite out of the source archive of `jsonschema`, whole or not at all."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", ":all:", ARCHIVE.replace("-", "==")]
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        done = subprocess.run(
            command, cwd=temporary, capture_output=True, text=True, timeout=240, check=False
        )
        archive = Path(temporary) / f"{ARCHIVE}.tar.gz"
        if not archive.is_file():
            lacking(f"the JSON Schema Test Suite could not be fetched by pip: {done.stderr[-300:]}")
        inside = Path(temporary) / "json"
        with tarfile.open(archive) as packed:
            for member in packed.getmembers():
                top, _, name = member.name.partition(f"{ARCHIVE}/json/")
                if member.isfile() and not top and name and ".." not in name:
                    target = inside / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    found = packed.extractfile(member)
                    assert found is not None
                    target.write_bytes(found.read())
        # Another process that runs tests may have been faster.
        with contextlib.suppress(OSError):
            inside.rename(folder)


def resources(suite: Path, folder: str) -> dict[str, Any]:
    """Give the documents that the cases of one draft may refer to."""
    remotes = suite / "remotes"
    others = {"draft-next", "draft3", *DRAFTS} - {folder}
    return {
        HOST + path.relative_to(remotes).as_posix(): json.loads(path.read_text("utf-8"))
        for path in remotes.rglob("*.json")
        if path.relative_to(remotes).parts[0] not in others
    }


def cases(suite: Path, folder: str) -> list[tuple[str, Any, Any, bool]]:
    """Give name, schema, value and verdict of each case."""
    return [
        (f"{path.stem}: {group['description']}: {case['description']}", schema, *verdict)
        for path in sorted((suite / "tests" / folder).glob("*.json"))
        for group in json.loads(path.read_text("utf-8"))
        for schema in [group["schema"]]
        for case in group["tests"]
        for verdict in [(case["data"], case["valid"])]
    ]


@pytest.mark.parametrize("folder", DRAFTS)
def test_every_required_case_is_judged_and_explained_rightly(suite: Path, folder: str) -> None:
    draft, count = DRAFTS[folder]
    known = resources(suite, folder)
    wrong: list[str] = []
    judged = 0
    for name, schema, value, valid in cases(suite, folder):
        declares = isinstance(schema, dict) and "$schema" in schema
        compiled = compile_schema(
            schema,
            root_object=False,
            unknown_keywords="ignore",
            draft=None if declares else draft,
            resources=known,
            assert_formats=False,  # the required cases take formats for annotations
        )
        judged += 1
        if compiled.is_valid(value) is not valid:
            wrong.append(name)
        elif bool(compiled.faults(value)) is valid:
            wrong.append(f"{name} (faults)")
    assert wrong == []
    assert judged >= count


@pytest.mark.parametrize("folder", ["draft2019-09", "draft2020-12"])
@pytest.mark.parametrize("form", ["date", "date-time", "email", "ipv4", "ipv6", "uri", "uuid"])
def test_formats_that_are_asserted_are_judged_rightly(suite: Path, folder: str, form: str) -> None:
    path = suite / "tests" / folder / "optional" / "format" / f"{form}.json"
    for group in json.loads(path.read_text("utf-8")):
        compiled = compile_schema(group["schema"], root_object=False, draft=DRAFTS[folder][0])
        for case in group["tests"]:
            assert compiled.is_valid(case["data"]) is case["valid"], case["description"]
