"""The MCP servers that a configuration names: as Claude Desktop, Cursor and VS Code write it.

    {"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}
    {"servers": {"docs": {"type": "http", "url": "https://…", "headers": {…}}}, "inputs": […]}

Comments and trailing commas are fine. `${env:X}`, `${X}`, `${X:-default}`, `${input:id}`,
`${userHome}` and `${workspaceFolder}` are filled in. Fields that other programs keep there for
themselves are left alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.edges.mcp.jsonc import MAX_BYTES, read_json
from seawall.edges.mcp.names import prefix_of
from seawall.edges.mcp.origin import origin_of_address, origin_of_command
from seawall.edges.mcp.variables import Input, Variables

Ask = Callable[[Input], "str | None"]

SECTIONS = ("mcpServers", "servers")
_EDITORS = (".vscode", ".cursor", ".idea", ".zed")


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One server: a program to start, or an address to speak to."""

    name: str
    command: tuple[str, ...] = ()
    """The program with its arguments, for stdio."""
    env: Mapping[str, str] = {}
    """Beside the few variables that every server inherits: HOME, PATH and their like."""
    cwd: str | None = None
    url: str | None = None
    """For streamable HTTP."""
    headers: Mapping[str, str] = {}
    disabled: bool = False
    """Named, but not to be connected unless somebody asks for it."""
    file: str = ""
    """Where it was read from."""

    @property
    def transport(self) -> Literal["stdio", "http"]:
        """How it is spoken to."""
        return "stdio" if self.url is None else "http"

    @property
    def origin(self) -> str:
        """Name it for people, without its secrets; another command or address has another name."""
        if self.url is not None:
            named = origin_of_address(self.url, more=dict(self.headers))
        else:
            named = origin_of_command(self.command, self.cwd or "", more=dict(self.env))
        return f"{self.name}: {named}"

    def __repr__(self) -> str:
        """Show which server it is, and none of its secrets: arguments, variables, headers."""
        where = self.command[0] if self.command else _without_secrets(self.url or "")
        return f"ServerConfig({self.name!r}, {self.transport}, {where!r})"


def load_servers(
    paths: str | Path | Iterable[str | Path],
    *,
    environ: Mapping[str, str] | None = None,
    ask: Ask | None = None,
) -> tuple[ServerConfig, ...]:
    """Read the servers of one or several files.

    Raises ConfigurationError with all faults, each with its file and field. `ask` is asked for what
    VS Code's `inputs` want; without it they come from the environment, see `Input.variable`.
    """
    faults: list[Fault] = []
    found: list[ServerConfig] = []
    for path in (paths,) if isinstance(paths, str | Path) else paths:
        try:
            found.extend(_load(Path(path), environ, ask))
        except ConfigurationError as error:
            faults.extend(error.faults)
    faults.extend(name_faults(found))
    if faults:
        raise ConfigurationError(faults)
    return tuple(found)


def servers_of(
    data: Any,
    *,
    file: str = "",
    folder: str | Path = ".",
    environ: Mapping[str, str] | None = None,
    ask: Ask | None = None,
) -> tuple[ServerConfig, ...]:
    """Read the servers of a configuration that is data already, as `load_servers` does."""
    return _Reader(data, file, Path(folder).absolute(), environ, ask).read()


def name_faults(servers: Iterable[ServerConfig]) -> list[Fault]:
    """Say which servers cannot be told apart by the names of their tools."""
    seen: dict[str, ServerConfig] = {}
    faults = []
    for server in servers:
        prefix = prefix_of(server.name)
        other = seen.get(prefix)
        if other is None:
            seen[prefix] = server
        else:
            where = f" (in {other.file})" if other.file and other.file != server.file else ""
            said = f"is named like another server: {other.name!r}{where}"
            faults.append(Fault(said, server.name, file=server.file))
    return faults


def _load(path: Path, environ: Mapping[str, str] | None, ask: Ask | None) -> Iterable[ServerConfig]:
    folder = path.absolute().parent
    return servers_of(
        read_json(path),
        file=str(path),
        folder=folder.parent if folder.name in _EDITORS else folder,
        environ=environ,
        ask=ask,
    )


class _Reader:
    """One configuration, read with all its faults."""

    def __init__(
        self,
        data: Any,
        file: str,
        folder: Path,
        environ: Mapping[str, str] | None,
        ask: Ask | None,
    ) -> None:
        self._data = data
        self._file = file
        self._folder = folder
        self._environ = os.environ if environ is None else environ
        self._ask = ask
        self._faults: list[Fault] = []

    def read(self) -> tuple[ServerConfig, ...]:
        section, servers, inputs = self._section()
        self._variables = Variables(self._environ, self._folder, self._inputs(inputs), self._ask)
        found = [
            server
            for name, entry in servers.items()
            if (server := self._server(name, entry, f"{section}.{name}")) is not None
        ]
        if self._faults:
            raise ConfigurationError(
                [Fault(fault.message, fault.key, file=self._file) for fault in self._faults]
            )
        return tuple(found)

    def _fault(self, key: str, said: str) -> None:
        self._faults.append(Fault(said, key))

    def _section(self) -> tuple[str, Mapping[str, Any], Any]:
        data = self._data
        # VS Code's settings hold the same one level deeper.
        if isinstance(data, dict) and isinstance(data.get("mcp"), dict):
            data = data["mcp"]
        if not isinstance(data, dict):
            self._fault("", f"must be an object with {' or '.join(SECTIONS)}")
            return "", {}, None
        named = [key for key in SECTIONS if key in data]
        if len(named) != 1:
            said = "has neither mcpServers nor servers" if not named else "has both of them"
            self._fault("", f"{said}; one of them names the servers")
            return "", {}, None
        servers = data[named[0]]
        if not isinstance(servers, dict):
            self._fault(named[0], f"must be an object of servers, not {_kind(servers)}")
            servers = {}
        return named[0], servers, data.get("inputs")

    def _inputs(self, given: Any) -> dict[str, Input]:
        found = {}
        for place, one in enumerate(given if isinstance(given, list) else ()):
            if not isinstance(one, dict) or not isinstance(one.get("id"), str):
                self._fault(f"inputs[{place}]", "must be an object with an id")
                continue
            default = one.get("default")
            found[one["id"]] = Input(
                one["id"],
                str(one.get("description") or ""),
                one.get("password") is True,
                default if isinstance(default, str) else None,
            )
        return found

    def _server(self, name: str, entry: Any, key: str) -> ServerConfig | None:
        if not isinstance(entry, dict):
            self._fault(key, f"must be an object with a command or a url, not {_kind(entry)}")
            return None
        before = len(self._faults)
        disabled = entry.get("disabled") is True or entry.get("enabled") is False
        url = entry.get("url", entry.get("serverUrl", entry.get("httpUrl")))
        kind = self._transport(entry, url, key)
        if kind == "http":
            read = self._http(entry, url, key)
        elif kind == "stdio":
            read = self._stdio(entry, key)
        if kind is None or len(self._faults) > before:
            return None
        return ServerConfig(name=name, disabled=disabled, file=self._file, **read)

    def _transport(self, entry: dict[str, Any], url: Any, key: str) -> str | None:
        kind = entry.get("type", entry.get("transport"))
        has_command = "command" in entry
        if kind is None:
            kind = "stdio" if has_command else "http" if url is not None else None
        if kind in ("http", "streamable-http", "streamableHttp", "streamable_http"):
            if url is not None:
                return "http"
            self._fault(key, "has no url; give the address of the server")
        elif kind == "stdio":
            if has_command:
                return "stdio"
            self._fault(key, "has no command; give the one that starts the server")
        elif kind == "sse":
            self._fault(
                f"{key}.type",
                "the old SSE transport is not spoken; use the server's address for"
                " streamable HTTP, with type 'http'",
            )
        elif kind is None:
            self._fault(key, "needs a command to start, or a url")
        else:
            self._fault(f"{key}.type", f"must be stdio or http, not {kind!r}")
        return None

    def _stdio(self, entry: dict[str, Any], key: str) -> dict[str, Any]:
        command = self._text(entry.get("command"), f"{key}.command")
        if isinstance(entry.get("command"), str) and not command.strip():
            self._fault(f"{key}.command", "must not be blank")
        arguments = entry.get("args", [])
        if not isinstance(arguments, list):
            self._fault(f"{key}.args", f"must be a list of texts, not {_kind(arguments)}")
            arguments = []
        cwd = entry.get("cwd")
        folder = None if cwd is None else self._text(cwd, f"{key}.cwd")
        return {
            "command": (
                command,
                *(
                    self._text(argument, f"{key}.args[{place}]")
                    for place, argument in enumerate(arguments)
                ),
            ),
            "env": {**self._env_file(entry, key), **self._texts(entry, "env", key)},
            "cwd": None if folder is None else str(self._folder / Path(folder).expanduser()),
        }

    def _http(self, entry: dict[str, Any], url: Any, key: str) -> dict[str, Any]:
        found = self._text(url, f"{key}.url")
        if found and not _is_address(found):
            self._fault(f"{key}.url", "must be an address that begins with http:// or https://")
        return {"url": found, "headers": self._texts(entry, "headers", key)}

    def _texts(self, entry: dict[str, Any], field: str, key: str) -> dict[str, str]:
        given = entry.get(field)
        if given is None:
            return {}
        if not isinstance(given, dict):
            self._fault(f"{key}.{field}", f"must be an object of texts, not {_kind(given)}")
            return {}
        return {
            name: self._text(value, f"{key}.{field}.{name}")
            for name, value in given.items()
            if value is not None
        }

    def _text(self, value: Any, key: str) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self._fault(key, f"must be a text, not {_kind(value)}")
            return ""
        found = self._variables.filled(str(value), key, self._faults)
        if "\0" in found or (("\n" in found or "\r" in found) and ".headers." in key):
            self._fault(
                key, "has a character that cannot stand there; take out line ends and zero bytes"
            )
        return found

    def _env_file(self, entry: dict[str, Any], key: str) -> dict[str, str]:
        if entry.get("envFile") is None:
            return {}
        path = self._folder / self._text(entry["envFile"], f"{key}.envFile")
        try:
            with path.open(encoding="utf-8") as stream:
                lines = stream.read(MAX_BYTES).splitlines()
        except (OSError, UnicodeDecodeError) as error:
            said = getattr(error, "strerror", None) or "is no UTF-8 text"
            self._fault(f"{key}.envFile", f"{path} cannot be read: {said}")
            return {}
        return dict(filter(None, map(_assignment, lines)))


def _assignment(line: str) -> tuple[str, str] | None:
    name, sign, value = line.strip().removeprefix("export ").partition("=")
    if not sign or name.startswith("#"):
        return None
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return name.strip(), value


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")
