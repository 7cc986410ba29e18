import hashlib
import os
from contextlib import suppress
from pathlib import Path

import pytest

from seawall.contract.failure import FailureCode, ToolFailed
from seawall.toolkit.file_hash import FileHash

TEXT = b"seawall\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    inside = tmp_path / "root"
    (inside / "sub").mkdir(parents=True)
    (inside / "sub" / "file.txt").write_bytes(TEXT)
    (tmp_path / "secret.txt").write_bytes(b"secret")
    return inside


@pytest.fixture(params=["folder by folder", "whole"])
def opening(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to open: that of systems that can hold a folder open, and that of the others."""
    if request.param == "whole":
        without = set(os.supports_dir_fd) - {os.open}
        monkeypatch.setattr(os, "supports_dir_fd", without)
    return str(request.param)


@pytest.mark.usefixtures("opening")
@pytest.mark.parametrize("algorithm", ["sha256", "sha512", "blake2b", "md5"])
@pytest.mark.parametrize("path", ["sub/file.txt", "./sub//file.txt", "sub\\file.txt"])
def test_the_digest_of_a_file_is_given(root: Path, algorithm: str, path: str) -> None:
    told = FileHash(root).file_hash(path, algorithm)  # type: ignore[arg-type]  # a table of names

    assert told == {
        "path": "sub/file.txt",
        "algorithm": algorithm,
        "digest": hashlib.new(algorithm, TEXT).hexdigest(),
        "bytes": len(TEXT),
    }


@pytest.mark.usefixtures("opening")
@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../secret.txt", FailureCode.PERMISSION_DENIED),
        ("sub/../../secret.txt", FailureCode.PERMISSION_DENIED),
        ("sub/../sub/file.txt", FailureCode.PERMISSION_DENIED),
        ("/etc/passwd", FailureCode.PERMISSION_DENIED),
        ("\\\\server\\share", FailureCode.PERMISSION_DENIED),
        ("C:/windows/win.ini", FailureCode.PERMISSION_DENIED),
        ("none.txt", FailureCode.NOT_FOUND),
        ("sub/file.txt/more", FailureCode.NOT_FOUND),
        ("x" * 300, FailureCode.PERMISSION_DENIED),
        ("sub", FailureCode.INVALID_ARGUMENT),
        (".", FailureCode.INVALID_ARGUMENT),
        ("sub/\0", FailureCode.INVALID_ARGUMENT),
        ("\ud800", FailureCode.INVALID_ARGUMENT),
        ("a/" * 70 + "b", FailureCode.INVALID_ARGUMENT),
    ],
)
def test_nothing_but_files_below_the_folder_can_be_read(
    root: Path, path: str, code: FailureCode
) -> None:
    with pytest.raises(ToolFailed) as refused:
        FileHash(root).file_hash(path)

    assert refused.value.failure.code is code
    assert str(root) not in refused.value.failure.message


@pytest.mark.usefixtures("opening")
@pytest.mark.parametrize("target", ["../secret.txt", "sub/file.txt"])
def test_links_are_not_followed_wherever_they_lead(root: Path, target: str) -> None:
    (root / "link.txt").symlink_to(root / target)
    (root / "folder").symlink_to(root / "sub")

    for path in ("link.txt", "folder/file.txt"):
        with pytest.raises(ToolFailed) as refused:
            FileHash(root).file_hash(path)
        assert refused.value.failure.code in (
            FailureCode.PERMISSION_DENIED,
            # What the system says of a link where a folder should be.
            FailureCode.NOT_FOUND,
        )


@pytest.mark.usefixtures("opening")
def test_a_pipe_is_no_file_and_holds_nothing_up(root: Path) -> None:
    os.mkfifo(root / "pipe")

    with pytest.raises(ToolFailed, match="no regular file"):
        FileHash(root).file_hash("pipe")


def test_a_file_is_read_up_to_a_bound(root: Path) -> None:
    assert FileHash(root, max_bytes=len(TEXT)).file_hash("sub/file.txt")["bytes"] == len(TEXT)

    with pytest.raises(ToolFailed, match="larger than 7 bytes"):
        FileHash(root, max_bytes=len(TEXT) - 1).file_hash("sub/file.txt")


def _open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def test_no_file_is_left_open(root: Path) -> None:
    before = _open_files()
    for path in ("sub/file.txt", "sub", "none/none", "sub/none"):
        with suppress(ToolFailed):
            FileHash(root).file_hash(path)

    assert _open_files() == before
