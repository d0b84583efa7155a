"""StreamedReply: a response in parts, sent as they are produced until the client disconnects."""

import asyncio
from collections.abc import AsyncGenerator

from starlette.types import Receive, Scope, Send


class StreamedReply:
    """An ASGI response in parts; the generator is closed when the client disconnects."""

    def __init__(
        self,
        parts: AsyncGenerator[bytes, None],
        *,
        media_type: str,
        reads: bool = False,
        cut_off: type[Exception] | None = None,
    ) -> None:
        """`parts` is always closed; `reads`: they read the request themselves.

        `cut_off` is the exception with which `parts` abort a response, so that a client can
        distinguish it from a complete one.
        """
        self.status_code = 200
        self._parts = parts
        self._media_type = media_type
        self._reads = reads
        self._cut_off = cut_off

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send part after part; waits while the client is slow."""
        tasks = [asyncio.ensure_future(self._send(send))]
        if not self._reads:
            tasks.append(asyncio.ensure_future(_until_disconnected(receive)))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0].done():
                tasks[0].result()
        except Exception as error:
            if self._cut_off is None or not isinstance(error, self._cut_off):
                raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._parts.aclose()

    async def _send(self, send: Send) -> None:
        headers = [(b"content-type", self._media_type.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for part in self._parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
