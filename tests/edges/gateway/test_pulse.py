from __future__ import annotations

from seawall.edges.gateway.pulse import Pulse, Silence
from seawall.testing import FakeClock


async def test_a_worker_is_silent_from_its_last_sign_and_not_at_all_before_its_first() -> None:
    clock = FakeClock()
    await clock.advance(100)
    pulse = Pulse(3, clock)
    pulse.beat(1)
    await clock.advance(4)
    pulse.beat(2)
    await clock.advance(0.25)

    assert [pulse.silent_s(number) for number in (1, 2, 3)] == [4.25, 0.25, None]
    assert pulse.shown()[0] == {"worker": 1, "silentS": 4.2}
    pulse.rest(1)
    assert pulse.silent_s(1) is None


async def test_silence_counts_while_somebody_watches() -> None:
    clock = FakeClock()
    await clock.advance(100)
    pulse = Pulse(1, clock)
    silence = Silence(pulse, clock, every_s=5)
    pulse.beat(1)
    for _ in range(3):
        await clock.advance(5)
        silence.look()
    assert silence.of(1) == 15

    await clock.advance(60)
    silence.look()
    assert silence.of(1) == 0
    await clock.advance(5)
    silence.look()
    assert silence.of(1) == 5
