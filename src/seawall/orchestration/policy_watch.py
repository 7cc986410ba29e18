"""Take a policy file anew when it changes, while calls go on.

All or nothing: a file that cannot be used, or one tool whose policy cannot work, leaves everything
as it was, and is reported. Calls that run end under the old policy; buckets and circuits go on with
what they hold.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from seawall.contract.errors import ConfigurationError
from seawall.pipeline.foreign import told
from seawall.policy.load import policy_files, refuse_blank
from seawall.policy.model import Policies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seawall.orchestration.pipeline import Pipeline

logger = logging.getLogger("seawall")

EVERY_S = 1.0

_Stamp = tuple[tuple[str, int, int, int], ...]


class PolicyWatch:
    """Keeps a pipeline under what its policy file says; made by `watched`.

    `reload()` takes the file now, whether it has changed or not: for a signal, or a button.
    """

    def __init__(
        self,
        path: str | Path,
        pipeline: Pipeline,
        *,
        environment: Mapping[str, str] | None = None,
        every_s: float = EVERY_S,
        on_reload: Callable[[Policies], object] | None = None,
        on_fault: Callable[[ConfigurationError], object] | None = None,
    ) -> None:
        if not every_s > 0:
            raise ValueError(f"every_s must be above 0; it is {every_s!r}")
        self._path = Path(path)
        self._pipeline = pipeline
        self._environment = environment
        self._every_s = every_s
        self._on_reload = on_reload
        self._on_fault = on_fault
        self._files: tuple[Path, ...] = policy_files(self._path)
        self._taken = self._stamp()
        self._task: asyncio.Task[None] | None = None
        self.reloads = 0
        """How often a policy was taken."""
        self.fault: ConfigurationError | None = None
        """Why the file could not be used when it was last read; None if it could."""

    def reload(self) -> bool:
        """Take the file now; False, and nothing has changed, if it cannot be used."""
        # Before it is read: what is written meanwhile is then seen as another change.
        self._files = tuple(dict.fromkeys((*policy_files(self._path), *self._files)))
        self._taken = self._stamp()
        try:
            refuse_blank(self._path)
            policies = Policies.load(self._path, environment=self._environment)
            self._pipeline.replace_policies(policies)
        except ConfigurationError as error:
            self.fault = error
            logger.warning("%s was not taken, the former policy goes on: %s", self._path, error)
            told(() if self._on_fault is None else (self._on_fault,), error)
            return False
        self.fault = None
        self.reloads += 1
        self._files = policy_files(self._path)
        self._taken = self._stamp()
        logger.info("%s was taken", self._path)
        told(() if self._on_reload is None else (self._on_reload,), policies)
        return True

    async def watch(self) -> None:
        """Look every `every_s` seconds, until cancelled.

        A change is taken once the files were the same at two looks: an editor may empty a file
        before it writes it. One that stays empty is refused.
        """
        seen = self._taken
        while True:
            await self._pipeline.clock.sleep(self._every_s)
            now = self._stamp()
            if now != self._taken and now == seen:
                self.reload()
            seen = now

    async def __aenter__(self) -> Self:
        self._task = asyncio.ensure_future(self.watch())
        return self

    async def __aexit__(self, *raised: object) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _stamp(self) -> _Stamp:
        return tuple(_stamped(path) for path in self._files)


def watched(
    path: str | Path,
    pipeline: Pipeline,
    *,
    environment: Mapping[str, str] | None = None,
    every_s: float = EVERY_S,
    on_reload: Callable[[Policies], object] | None = None,
    on_fault: Callable[[ConfigurationError], object] | None = None,
) -> PolicyWatch:
    """Watch a policy file, and those that it extends, while the block runs.

        async with watched("shop.toml", pipeline):
            ...

    The pipeline is taken to run under that file already. `on_reload` is told the new policies,
    `on_fault` why a file was not taken.
    """
    return PolicyWatch(
        path,
        pipeline,
        environment=environment,
        every_s=every_s,
        on_reload=on_reload,
        on_fault=on_fault,
    )


def _stamped(path: Path) -> tuple[str, int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, 0, 0
    return str(path), found.st_mtime_ns, found.st_size, found.st_ino
