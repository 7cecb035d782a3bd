"""`dragoman acp`: serves one editor on standard input and output until it closes them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from dragoman.cli.acp.agent import AcpAgent, explain
from dragoman.cli.acp.folders import AcpFlags
from dragoman.cli.acp.jsonrpc import RpcPeer
from dragoman.cli.acp.stdio import claimed_streams, open_lines, open_writer


def acp(flags: AcpFlags) -> None:
    with claimed_streams() as (incoming, outgoing):
        asyncio.run(_serve(flags, incoming, outgoing))


async def _serve(flags: AcpFlags, incoming: int, outgoing: int) -> None:
    writer = await open_writer(outgoing)
    try:
        async with AsyncExitStack() as stack:
            agent = AcpAgent(flags, stack)
            peer = RpcPeer(open_lines(incoming), writer, agent.requests, agent.notifications, explain)
            agent.connect(peer)
            try:
                await peer.serve()
            except ConnectionError:
                pass  # the editor went away in the middle of a line
            finally:
                await agent.close()
    finally:
        writer.close()
