"""What the options `--registry` and `--policy` name: found, loaded, or said clearly why not."""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import pkgutil
import sys
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.tool import Tool
from seawall.pipeline.foreign import described, guarded
from seawall.registry.registry import Registry
from seawall.registry.wrapping import wrap

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator

    from seawall.edges.cli.paper import Paper
    from seawall.pipeline.recorder import Recorder
    from seawall.policy.model import Policies
    from seawall.stores.state import State

OPTION = "--registry"
STATE = "--state"

_TAKES = "takes a module's name and an attribute in it, such as shop.tools:registry"
_PLAIN_RESULTS = {"str", "int", "float", "bool", "bytes", "None", "NoneType"}


def state_from(url: str | None) -> State | None:
    """Open the state of a URL; None is none."""
    return None if url is None else _opened(url)


def existing_state(url: str) -> State:
    """Open a state that is there: looking at one must not make it."""
    from seawall.stores.address import address_of  # noqa: PLC0415  # only with a state

    with _of_option(STATE):
        address = address_of(url)
    if address.kind == "memory":
        said = "is in memory, which no other process can see; give sqlite:///FILE or postgresql://…"
        raise ConfigurationError([Fault(said, STATE)])
    if address.path is not None and not address.path.exists():
        said = f"there is no state at {address.shown}; give the address that made one"
        raise ConfigurationError([Fault(said, STATE)])
    return _opened(url)


def _opened(url: str) -> State:
    from seawall.stores.opening import open_state  # noqa: PLC0415  # only with a state

    with _of_option(STATE):
        return open_state(url)


@contextmanager
def _of_option(name: str) -> Iterator[None]:
    """Name the option in faults that name nothing: the value may have a password in it."""
    try:
        yield
    except ConfigurationError as error:
        faults = [
            msgspec.structs.replace(fault, key=name) if not (fault.key or fault.file) else fault
            for fault in error.faults
        ]
        raise ConfigurationError(faults) from None


@asynccontextmanager
async def kept(state: State | None) -> AsyncIterator[None]:
    """Have a state, if there is one, for the length of a block."""
    if state is None:
        yield
        return
    async with state:
        yield


def registry_from(
    where: str | None, policies: Policies | None = None, state: State | None = None
) -> Registry:
    """Load the registry that `module:attribute` names; None gives the bundled tools.

    These keep their notes in `state`, and ask the addresses that `policies` open.
    The attribute may be anything `wrap` takes, or a function without parameters that gives it.
    Modules of the current directory are found too.
    """
    if where is None:
        from seawall.toolkit.bundle import bundled  # noqa: PLC0415  # only without a registry

        return bundled(
            http_allow=() if policies is None else policies.http_check.allow,
            notes=None if state is None else state.notes,
        )
    thing = _found(where)
    if is_factory(thing):
        thing = _run(f"{where} was called and raised", thing)
    try:
        return wrap(thing)
    except ConfigurationError as error:
        raise ConfigurationError(
            [Fault(fault.message, _key(where, fault.key)) for fault in error.faults]
        ) from error


def told_of_bundled(errors: Paper, registry: str | None, servers: object = None) -> None:
    """Say how tools of one's own are named, where a name was looked for among the bundled ones.

    `servers` are those that the command line named; None where it cannot name any.
    """
    if registry is None and not servers:
        how = "--registry" if servers is None else "--registry or --mcp-config"
        errors.line(f"These are the bundled tools; {how} names others.")


def policies_from(where: str | None) -> Policies | None:
    """Load a policy file, or one that comes with Seawall by its bare name.

    The environment may change single values, also of the policy that holds without a name.
    """
    from seawall.policy.overrides import is_overridden  # noqa: PLC0415  # not for --help

    if where is None and not is_overridden(os.environ):
        return None
    from seawall.policy.model import Policies  # noqa: PLC0415  # only with a policy

    return Policies.load(policy_path(where or "default"), environment=os.environ)


@contextmanager
def recorded(file: str | None, registry: Registry) -> Iterator[list[Recorder]]:
    """Open the file that `--record` names; gives the recorders for a pipeline."""
    if file is None:
        yield []
        return
    from seawall.recording.trace_file import TraceFile  # noqa: PLC0415  # only with --record

    with TraceFile(file, tools=registry) as recorder:
        yield [recorder]


def policy_path(where: str) -> Path:
    """Find the file that `--policy` names: a path, or the bare name of a ready-made one."""
    from seawall.policy.ready_made import ready_made  # noqa: PLC0415  # only with a policy

    path = Path(where)
    if path.exists() or path.suffix or len(path.parts) > 1:
        return path
    return ready_made(where)


def is_factory(thing: Any) -> bool:
    """Whether a thing is to be called for a registry, and is no tool itself.

    Only a function that takes nothing, or says that it gives a `Registry`. One that says it gives
    plain text or numbers is a tool: it must not be run to look at it.
    """
    if isinstance(thing, (Tool, Registry, type)) or not callable(thing):
        return False
    if inspect.iscoroutinefunction(thing) or inspect.isgeneratorfunction(thing):
        return False
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return False
    gives = signature.return_annotation
    gives = gives if isinstance(gives, str) else getattr(gives, "__name__", str(gives))
    parameters = signature.parameters.values()
    needs = [one for one in parameters if one.default is one.empty and one.kind.value not in (2, 4)]
    if gives.rpartition(".")[2] == "Registry":
        return not needs
    return not parameters and gives not in _PLAIN_RESULTS


class _Raised:
    """What foreign code raised, as a value."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _run(what: str, work: Callable[[], Any]) -> Any:
    found = guarded(what, work, _Raised)
    if isinstance(found, _Raised):
        raise ConfigurationError([Fault(f"{what} {described(found.error)}", OPTION)])
    return found


def _found(where: str) -> Any:
    name, _, path = where.partition(":")
    if not name or not all(part.isidentifier() for part in name.split(".")):
        raise ConfigurationError([Fault(f"{_TAKES}, not {where!r}", OPTION)])
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    thing: Any = _module(name)
    said = name
    for attribute in path.split(".") if path else ():
        thing = _attribute(said, thing, attribute)
        said = f"{said}:{attribute}" if said == name else f"{said}.{attribute}"
    return thing


def _attribute(said: str, thing: Any, name: str) -> Any:
    # An attribute may be made when it is asked for, by code that raises anything.
    found = guarded(f"{said}.{name} raised", lambda: getattr(thing, name), _Raised)
    if not isinstance(found, _Raised):
        return found
    if isinstance(found.error, AttributeError):
        raise ConfigurationError([Fault(_no_attribute(said, thing, name), OPTION)])
    raise ConfigurationError([Fault(f"{said}.{name} raised {described(found.error)}", OPTION)])


def _module(name: str) -> Any:
    found = guarded(f"importing {name} raised", lambda: importlib.import_module(name), _Raised)
    if not isinstance(found, _Raised):
        return found
    error = found.error
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing and (name == missing or name.startswith(f"{missing}.")):
        raise ConfigurationError([Fault(_no_module(missing, name), OPTION)])
    raise ConfigurationError(
        [Fault(f"module {name!r} cannot be imported: {described(error)}", OPTION)]
    )


def _no_module(name: str, asked: str) -> str:
    if asked.endswith(".py"):
        return f"{_TAKES}: without .py"
    parent, _, last = name.rpartition(".")
    if hasattr(sys.modules.get(parent), last):
        return f"there is no module {name!r}; did you mean '{parent}:{last}'?"
    places = getattr(sys.modules.get(parent), "__path__", None) if parent else [str(Path.cwd())]
    names = [f"{parent}.{info.name}" if parent else info.name for info in _modules(places)]
    near = _near(name if parent else last, names)
    return f"there is no module {name!r}, neither here nor installed{near}"


def _modules(places: Iterable[str] | None) -> Iterable[pkgutil.ModuleInfo]:
    return pkgutil.iter_modules(places) if places is not None else ()


def _no_attribute(said: str, thing: Any, attribute: str) -> str:
    names = [name for name in dir(thing) if not name.startswith("_")]
    near = _near(attribute, names)
    if not near:
        static = ((name, inspect.getattr_static(thing, name, None)) for name in names)
        fitting = [name for name, value in static if isinstance(value, (Tool, Registry))]
        near = f"; it has {', '.join(fitting[:5])}" if fitting else ""
    return f"{said!r} has no {attribute!r}{near}"


def _near(name: str, names: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(names), 3, 0.6)
    return f"; did you mean {' or '.join(repr(one) for one in found)}?" if found else ""


def _key(where: str, key: str) -> str:
    return f"{OPTION} {where}: {key}" if key else f"{OPTION} {where}"
