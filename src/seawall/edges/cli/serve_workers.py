"""`seawall serve --workers N`: one process that watches, and the workers that it forks."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.edges.cli.serve import (
    Access,
    ServeOptions,
    access_of,
    need_gateway,
    serve_here,
    settings_of,
    with_replicas,
)
from seawall.edges.cli.sources import policies_from, state_from
from seawall.edges.gateway.sharing import need_shared_state
from seawall.pipeline.clock import SystemClock

if TYPE_CHECKING:
    from seawall.edges.addresses import HeldAddress
    from seawall.edges.cli.metrics_folder import MetricsFolder
    from seawall.edges.cli.paper import Paper
    from seawall.edges.gateway.seat import Seat
    from seawall.edges.gateway.settings import GatewaySettings

METRICS = "PROMETHEUS_MULTIPROC_DIR"


def serve_by_workers(options: ServeOptions, paper: Paper) -> int:
    """Watch over workers until told to stop; gives the exit code, here and in each worker."""
    need_gateway()
    _checked(options)
    from seawall.edges.gateway.supervisor import (  # noqa: PLC0415  # not on every system
        Rules,
        Supervisor,
    )

    access = access_of(options)
    policies = with_replicas(policies_from(options.policy), options.workers)
    address = _held(settings_of(options, policies, access.tokens))
    made = _made_for_metrics()
    folder = os.environ[METRICS]
    supervisor = Supervisor(
        Rules(
            workers=options.workers,
            drain_s=options.drain_s,
            replace_blocked_s=options.replace_blocked_s,
        ),
        SystemClock(),
        lambda line: _say(paper, line),
        lambda number: _bury(number, folder),
    )
    try:
        seat = supervisor.run()
    except BaseException:
        address.close()
        raise
    address.close()
    if not isinstance(seat, int):
        options = msgspec.structs.replace(options, port=address.port)
        return _as_worker(options, paper, access, seat)
    if access.made is not None:
        access.made.remove()
    if made is not None:
        made.remove()
    return seat


def _held(settings: GatewaySettings) -> HeldAddress:
    from seawall.edges.gateway.serve import held  # noqa: PLC0415  # an extra

    return held(settings)


def _as_worker(options: ServeOptions, paper: Paper, access: Access, seat: Seat) -> int:
    from seawall.recording.workers import name_worker  # noqa: PLC0415  # not in the supervisor

    name_worker(_in_files(seat.number))
    serve_here(options, paper, access, seat)
    return 0


def _checked(options: ServeOptions) -> None:
    """Refuse what cannot work before anything is started."""
    if sys.platform != "linux":
        said = "needs Linux, as other systems do not spread connections over processes"
        raise ConfigurationError([Fault(said, "--workers")])
    need_shared_state(state_from(options.state), options.workers)


def _made_for_metrics() -> MetricsFolder | None:
    """Make a folder in which workers count together, unless one is given."""
    if os.environ.get(METRICS):
        return None
    from seawall.edges.cli.metrics_folder import (  # noqa: PLC0415  # not on every system
        MetricsFolder,
    )

    made = MetricsFolder()
    os.environ[METRICS] = str(made.path)
    return made


def _say(paper: Paper, line: str) -> None:
    """Say something; that nobody listens any more is no reason to leave the workers alone."""
    with suppress(OSError, ValueError):
        paper.text(line)


def _bury(number: int, folder: str) -> None:
    from seawall.recording.workers import bury_worker  # noqa: PLC0415  # not before one ends

    with suppress(OSError):  # nothing of it is there, or not the folder
        bury_worker(_in_files(number), folder)


def _in_files(number: int) -> str:
    return f"w{number}"
