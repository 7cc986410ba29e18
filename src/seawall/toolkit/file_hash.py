"""`file_hash`: digests of files below one folder, and of nothing outside of it."""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from seawall.contract.failure import FailureCode, ToolFailed
from seawall.toolkit.refusal import failed, invalid, shown

_CHUNK = 1 << 20
_MAX_PARTS = 64
# Symbolic links are refused by the system itself, so none can be put in place between a check and
# the opening; a pipe must not hold the opening up. Windows knows neither.
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE = os.O_RDONLY | _NO_LINKS | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_FOLDER = os.O_RDONLY | _NO_LINKS | getattr(os, "O_DIRECTORY", 0)


class FileHash:
    """Reads files below `root`, up to `max_bytes` of each. Symbolic links are not followed."""

    def __init__(self, root: Path, *, max_bytes: int = 1 << 30) -> None:
        self._root = root
        self._max_bytes = max_bytes

    def file_hash(
        self,
        path: Annotated[
            str, Field(min_length=1, max_length=1000, description="Relative to the allowed folder.")
        ],
        algorithm: Literal["sha256", "sha512", "blake2b", "md5"] = "sha256",
    ) -> dict[str, Any]:
        """Compute the digest of a file in the allowed folder. md5 only to compare, not to trust."""
        parts = _parts(path)
        try:
            with _opened(self._root, parts) as file:
                digest, size = self._read(file, algorithm)
        except (FileNotFoundError, NotADirectoryError):
            raise failed(FailureCode.NOT_FOUND, f"there is no file {shown(path, 200)}") from None
        except OSError:
            # Among others a symbolic link on the way, which the system reports in several ways.
            raise _closed(path) from None
        return {"path": "/".join(parts), "algorithm": algorithm, "digest": digest, "bytes": size}

    def _read(self, file: int, algorithm: str) -> tuple[str, int]:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise invalid("path", "path is no regular file")
        digest = hashlib.new(algorithm, usedforsecurity=False)
        size = 0
        while chunk := os.read(file, _CHUNK):
            size += len(chunk)
            if size > self._max_bytes:
                raise invalid(
                    "path", f"the file is larger than {self._max_bytes} bytes", reason="too_large"
                )
            digest.update(chunk)
        return digest.hexdigest(), size


def _parts(path: str) -> list[str]:
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    if "\0" in path or not parts or len(parts) > _MAX_PARTS:
        raise invalid("path", "path must name a file below the allowed folder")
    try:
        os.fsencode(path)
    except UnicodeError:
        raise invalid("path", "path holds half of a character (a lone surrogate)") from None
    if path[0] in "/\\" or ".." in parts or any(":" in part for part in parts[:1]):
        raise _closed(path)
    return parts


def _closed(path: str) -> ToolFailed:
    return failed(
        FailureCode.PERMISSION_DENIED,
        f"{shown(path, 200)} cannot be read: only files below the allowed folder, not by links",
        reason="path_refused",
        may_have_run=False,
    )


@contextmanager
def _opened(root: Path, parts: list[str]) -> Iterator[int]:
    """Open a file folder by folder, so that no part of the way can be a link."""
    if os.open not in os.supports_dir_fd:
        file = _opened_whole(root, parts)
    else:
        folder = os.open(root, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            for part in parts[:-1]:
                inner = os.open(part, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = inner
            file = os.open(parts[-1], _FILE, dir_fd=folder)
        finally:
            os.close(folder)
    try:
        yield file
    finally:
        os.close(file)


def _opened_whole(root: Path, parts: list[str]) -> int:
    """Open where folders cannot be held open: compare the real path with the one asked for."""
    real_root = root.resolve(strict=True)
    wanted = real_root.joinpath(*parts)
    if wanted.resolve(strict=True) != wanted:
        raise PermissionError
    return os.open(wanted, _FILE)
