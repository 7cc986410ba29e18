"""A real Prometheus over a real process, and what it says.

python tests/grafana/server.py SECONDS FILE    records the panels' data for the picture in docs
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

ROOT = Path(__file__).parents[2]
GRAFANA = ROOT / "grafana"
VARIABLES = {"$__rate_interval": "15s", "$__range": "5m", "$instance": ".*", "$tool": ".*"}
CONFIGURATION = """\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}, {alerts}]
scrape_configs:
  - job_name: seawall
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def plain(expr: str) -> str:
    """An expression of a panel, with its variables replaced."""
    for name, value in VARIABLES.items():
        expr = expr.replace(name, value)
    return expr


def panels() -> list[dict[str, Any]]:
    """The dashboard's panels without their rows; those of a closed row too."""
    dashboard = json.loads((GRAFANA / "seawall.json").read_text("utf-8"))
    found: list[dict[str, Any]] = []
    for one in dashboard["panels"]:
        found += one["panels"] if one["type"] == "row" else [one]
    return found


class Watched:
    """Traffic, and a Prometheus that scrapes it every second."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._running: list[subprocess.Popen[str]] = []
        self.url = ""

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        for one in self._running:
            one.terminate()
        for one in self._running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.wait(10)
            one.kill()
            one.wait()
            if one.stdout is not None:
                one.stdout.close()

    def _start(self) -> None:
        traffic = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("traffic.py"))],
            stdout=subprocess.PIPE,
            text=True,
            env={key: value for key, value in os.environ.items() if "MULTIPROC" not in key},
        )
        self._running.append(traffic)
        assert traffic.stdout is not None
        port = int(traffic.stdout.readline())
        rules, alerts = GRAFANA / "rules.yml", GRAFANA / "alerts.yml"
        config = self._work / "prometheus.yml"
        config.write_text(CONFIGURATION.format(rules=rules, alerts=alerts, port=port))
        own = free_port()
        self.url = f"http://127.0.0.1:{own}"
        program = shutil.which("prometheus")
        assert program is not None
        self._running.append(
            subprocess.Popen(
                [
                    program,
                    f"--config.file={config}",
                    f"--storage.tsdb.path={self._work / 'data'}",
                    f"--web.listen-address=127.0.0.1:{own}",
                    "--enable-feature=exemplar-storage",
                    "--log.level=error",
                ],
                text=True,
            )
        )
        self._wait()

    def _wait(self) -> None:
        until = time.monotonic() + 30
        while True:
            with contextlib.suppress(URLError, OSError):
                urlopen(f"{self.url}/-/ready", timeout=2).close()
                return
            if time.monotonic() > until:
                raise TimeoutError("Prometheus is not ready")
            time.sleep(0.1)

    def ask(self, path: str, **fields: str) -> Any:
        """What the server's API answers."""
        with urlopen(f"{self.url}/api/v1/{path}?{urlencode(fields)}", timeout=20) as answer:
            return json.load(answer)["data"]

    def now(self, expr: str, at: float | None = None) -> list[dict[str, Any]]:
        """The series of an expression at this moment, or at another."""
        when = {} if at is None else {"time": f"{at}"}
        found: list[dict[str, Any]] = self.ask("query", query=expr, **when)["result"]
        return found

    def between(self, expr: str, start: float, end: float, step_s: float) -> list[dict[str, Any]]:
        """The series of an expression over time."""
        found: list[dict[str, Any]] = self.ask(
            "query_range", query=expr, start=f"{start}", end=f"{end}", step=f"{step_s}"
        )["result"]
        return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def recorded(watched: Watched, start: float, end: float) -> list[dict[str, Any]]:
    """What each panel shows of that time."""
    step_s = max(round((end - start) / 120), 1)
    found = []
    for panel in panels():
        targets = []
        for target in panel["targets"]:
            expr = plain(target["expr"])
            series = (
                watched.now(expr, end)
                if target["instant"]
                else watched.between(expr, start, end, step_s)
            )
            targets.append({"legend": target["legendFormat"], "series": series})
        kept = ("id", "type", "title", "gridPos", "fieldConfig")
        found.append({**{key: panel[key] for key in kept}, "targets": targets})
    return found


def main(seconds: float, file: Path, work: Path) -> None:
    with Watched(work) as watched:
        time.sleep(seconds + 20)
        end = time.time()
        file.write_text(json.dumps(recorded(watched, end - seconds, end)) + "\n")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        main(float(sys.argv[1]), Path(sys.argv[2]), Path(folder))
