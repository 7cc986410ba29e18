"""Token buckets in a Redis or Valkey: one script, one round trip, the server's clock.

A bucket is one text, `tokens stamp capacity period`: how many there were at a time in µs, and the
rate they fill at since. It is forgotten when it is full, which is what a forgotten one is. What is
there under its name and is no bucket, or not of this type, is taken for a forgotten one too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.contract.taken import Taken

if TYPE_CHECKING:
    from seawall.stores.redis_link import RedisLink

_SCRIPT = """
local capacity, period, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local kept = redis.pcall('GET', KEYS[1])
if type(kept) == 'table' then
  if not string.find(kept.err, 'WRONGTYPE', 1, true) then return kept end
  kept = false
end
local function number(text)
  local found = tonumber(text or '')
  return found and found >= 0 and found < 1e18 and found or nil
end
local tokens, settled = capacity, true
local was, stamp, cap, per
if kept then
  was, stamp, cap, per = string.match(kept, '^(%S+) (%S+) (%S+) (%S+)$')
  was, stamp, cap, per = number(was), number(stamp), number(cap), number(per)
end
if was and stamp and cap and per and cap > 0 and per > 0 then
  -- A clock that was set back gives nobody more; time goes on from there.
  tokens = math.min(was + math.max(now - stamp, 0) * cap / per, cap)
  settled = stamp <= now and cap == capacity and per == period
  if cap ~= capacity then
    -- Full stays full; else the new rate goes on from the tokens that are there.
    tokens = tokens >= cap and capacity or math.min(tokens, capacity)
  end
elseif cost < 0 then
  return {1, '0', string.format('%.17g', tokens)}
end
local granted = tokens >= cost
local left = granted and math.min(tokens - cost, capacity) or tokens
if granted or not settled then
  if left >= capacity then
    redis.call('DEL', KEYS[1])
  else
    local full = math.ceil((capacity - left) * period / capacity / 1000) + 1
    local text = string.format('%.17g %.17g %.17g %.17g', left, now, capacity, period)
    redis.call('SET', KEYS[1], text, 'PX', full)
  end
end
local wait = 0
if not granted then
  wait = math.ceil((cost - tokens) * period / capacity)
  while tokens + wait * capacity / period < cost do
    wait = wait + 1
  end
end
return {granted and 1 or 0, string.format('%.17g', wait), string.format('%.17g', left)}
"""

_NAME = "bucket"


class RedisBuckets:
    """Takes and gives back tokens that all processes share; decisions are exact across them."""

    def __init__(self, link: RedisLink, prefix: str, replicas: int) -> None:
        self._link = link
        self._prefix = f"{prefix}:bucket:"
        self.replicas = replicas
        """How many processes share a rate, for what each may grant without the store."""
        link.script(_NAME, _SCRIPT)

    async def take(self, key: str, capacity: int, period_s: int, cost: int) -> Taken | None:
        """Take `cost` tokens or none; None if the store gives no answer within its bound."""
        answer = await self._link.ask(
            _NAME, self._prefix + key, (capacity, period_s * 1_000_000, cost)
        )
        if answer is None:
            return None
        granted, wait_us, left = answer
        return Taken(granted == 1, float(wait_us) / 1e6, float(left))

    async def give_back(self, key: str, capacity: int, period_s: int, cost: int) -> None:
        """Return tokens of a call that was not made; never above the capacity."""
        await self.take(key, capacity, period_s, -cost)

    def give_back_later(self, key: str, capacity: int, period_s: int, cost: int) -> None:
        """Return tokens without waiting for it: for a call that was cancelled."""
        if self._link.is_up:
            self._link.spawn(self.give_back(key, capacity, period_s, cost))
