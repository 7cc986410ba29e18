"""Open circuits in a Redis or Valkey: one hash, one script, the server's clock.

A field is a circuit that is open, or was a moment ago; what is closed for longer has none. The
script decides which process may probe, so that one does for all. One that was opened by hand has
its field for a week, and longer while a process is there that knows of it.

A field that cannot be read, as another version or somebody else may have written it, is passed over
as if it were not there, and so is a key of another type: the other circuits are served as ever.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.circuit_news import CircuitSeen
from seawall.pipeline.foreign import log

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seawall.contract.circuit_news import CircuitNews
    from seawall.stores.redis_link import RedisLink

_SCRIPT = """
local key, what, name, process = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local left, length, kind = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local is_odd = false
local function asked(...)
  local answer = redis.pcall(...)
  if type(answer) ~= 'table' or not answer.err then return answer end
  if not string.find(answer.err, 'WRONGTYPE', 1, true) then return redis.call(...) end
  is_odd = true
  return false
end
local function record(text)
  local is_json, found = pcall(cjson.decode, text or '')
  if not is_json or type(found) ~= 'table' then return false end
  for _, field in ipairs({'due', 'cooldown', 'lapse', 'forget'}) do
    local value = found[field]
    if type(value) ~= 'number' or not (value >= 0 and value < 1e15) then return false end
  end
  for _, field in ipairs({'changed', 'kind', 'holder'}) do
    if type(found[field]) ~= 'string' then return false end
  end
  return type(found.open) == 'boolean' and found
end

if what == 'read' then
  return {tostring(now), asked('HGETALL', key) or {}}
end

local one = record(asked('HGET', key, name))
local function save()
  if is_odd then redis.call('DEL', key) end
  is_odd = false
  local keep = one.held and 604800000 or one.cooldown * 2 + 600000
  one.forget = now + keep
  redis.call('HSET', key, name, cjson.encode(one))
  if redis.call('PTTL', key) < keep then redis.call('PEXPIRE', key, keep) end
end
local function change(open)
  one = {changed = time[1] .. '.' .. time[2], open = open, due = now + left, cooldown = length,
         kind = kind, holder = '', lapse = 0, held = false}
end
local function open()
  local flat = asked('HGETALL', key) or {}
  for place = 2, #flat, 2 do
    local other = record(flat[place])
    if other and other.forget <= now then redis.call('HDEL', key, flat[place - 1]) end
  end
  change(true)
  save()
end

if what == 'held' then
  if not (one and one.held) then
    change(true)
    one.held = true
  end
  save()
  return 0
end
if what == 'ask' then
  if not one then change(true) end
  if not one.open then return -1 end
  if one.held then return 500 end
  if now < one.due then return one.due - now end
  if one.holder ~= '' and one.holder ~= process and now < one.lapse then
    return math.min(one.lapse - now, 500)
  end
  one.holder, one.lapse = process, now + 2 * length + 10000
  save()
elseif what == 'tripped' then
  if not (one and one.open) then open() end
elseif what == 'closed' and not one then
  change(false)
  save()
elseif one and one.open and (what == 'closed' or one.holder == process) then
  if what == 'failed' then
    open()
  elseif what == 'released' then
    one.holder = ''
    save()
  else
    change(false)
    save()
  end
end
return 0
"""

_NAME = "circuit"


class _Kept(msgspec.Struct):
    """A field of the hash; times are the server's, in ms."""

    changed: str
    open: bool
    due: float
    cooldown: float
    kind: str
    held: bool = False


class RedisCircuits:
    """What all processes know of circuits that are not closed."""

    def __init__(self, link: RedisLink, prefix: str) -> None:
        self._link = link
        self._key = f"{prefix}:circuits"
        self._unread = 0
        link.script(_NAME, _SCRIPT)

    async def ask(self, name: str, process: str, cooldown_s: float) -> float | None:
        """Ask for leave to probe: 0, or the seconds to wait; below 0 if it is closed.

        Leave of which nothing more is heard lapses after twice the cooldown and 10 s. None: the
        store is silent.
        """
        answer = await self._run("ask", name, process, 0.0, cooldown_s)
        return None if answer is None else float(answer) / 1000

    async def tell(self, news: CircuitNews) -> bool:
        """Say what happened; False if the store did not hear it."""
        answer = await self._run(
            news.what, news.name, news.process, news.left_s, news.cooldown_s, news.kind
        )
        return answer is not None

    async def read(self) -> Mapping[str, CircuitSeen] | None:
        """Read all circuits that are open, or were a moment ago; None if the store is silent."""
        answer = await self._run("read")
        if answer is None:
            return None
        now, flat = float(answer[0]), answer[1]
        found = [_read(*one, now) for one in zip(flat[::2], flat[1::2], strict=True)]
        seen = dict(one for one in found if one is not None)
        self._told_of_unread(len(found) - len(seen))
        return seen

    def _told_of_unread(self, count: int) -> None:
        """Say once that there are some, and once more when there are more."""
        if count > self._unread:
            log.warning(
                "%d fields of %s in the shared store cannot be read and are passed over: another"
                " version, or somebody else, has written them",
                count,
                self._key,
            )
        self._unread = count

    async def _run(
        self,
        what: str,
        name: str = "",
        process: str = "",
        left_s: float = 0.0,
        cooldown_s: float = 0.0,
        kind: str = "",
    ) -> Any:
        left, cooldown = math.ceil(left_s * 1000), math.ceil(cooldown_s * 1000)
        return await self._link.ask(_NAME, self._key, (what, name, process, left, cooldown, kind))


def _read(name: bytes, text: bytes, now: float) -> tuple[str, CircuitSeen] | None:
    """Read a field; None if it is none of ours."""
    try:
        kept = msgspec.json.decode(text, type=_Kept)
        sound = math.isfinite(kept.due) and 0 <= kept.cooldown < math.inf
        return (name.decode(), _seen(kept, now)) if sound else None
    except (msgspec.MsgspecError, ValueError):
        return None


def _seen(kept: _Kept, now: float) -> CircuitSeen:
    return CircuitSeen(
        kept.changed,
        kept.open,
        max(kept.due - now, 0.0) / 1000,
        kept.cooldown / 1000,
        kept.kind,
        kept.held,
    )
