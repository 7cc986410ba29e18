"""Open circuits in a Redis or Valkey: one hash, one script, the server's clock.

A field is a circuit that is open, or was a moment ago; what is closed for longer has none. The
script decides which process may probe, so that one does for all. One that was opened by hand has
its field for a week, and longer while a process is there that knows of it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.circuit_news import CircuitSeen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seawall.contract.circuit_news import CircuitNews
    from seawall.stores.redis_link import RedisLink

_SCRIPT = """
local key, what, name, process = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local left, length, kind = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if what == 'read' then
  return {tostring(now), redis.call('HGETALL', key)}
end

local kept = redis.call('HGET', key, name)
local one = kept and cjson.decode(kept)
local function save()
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
  local flat = redis.call('HGETALL', key)
  for place = 2, #flat, 2 do
    if cjson.decode(flat[place]).forget <= now then redis.call('HDEL', key, flat[place - 1]) end
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
        return {
            name.decode(): _seen(msgspec.json.decode(kept, type=_Kept), now)
            for name, kept in zip(flat[::2], flat[1::2], strict=True)
        }

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


def _seen(kept: _Kept, now: float) -> CircuitSeen:
    return CircuitSeen(
        kept.changed,
        kept.open,
        max(kept.due - now, 0.0) / 1000,
        kept.cooldown / 1000,
        kept.kind,
        kept.held,
    )
