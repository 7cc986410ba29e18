"""What tools do, as plain methods, for each framework to make tools of."""

import asyncio


class Trade:
    """A shop that may be away, that waits, and that takes money; it remembers what was done."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        """How often `find` is still to fail."""
        self.runs: list[str] = []
        """The argument of each run of `find` and `pay`."""
        self.begun, self.cancelled = asyncio.Event(), asyncio.Event()

    async def find(self, q: str) -> str:
        """Find an article.

        Args:
            q: What to look for.
        """
        self.runs.append(q)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("reset by sk-live-1234567890")
        return f"found {q}"

    async def wait(self) -> str:
        """Wait."""
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        return ""

    async def pay(self, to: str) -> str:
        """Pay somebody."""
        self.runs.append(to)
        return f"paid {to}"
