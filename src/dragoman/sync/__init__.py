"""Use the library without `await` in synchronous programs, notebooks and scripts.

    with SyncRuntime("chat.db", model="ollama/qwen3") as runtime:
        print(runtime.send("Hello").result().text)

The runtime lives in a separate thread, and each method waits for it. `run_sync` asks a single question.
"""

from __future__ import annotations

from dragoman.sync.conversation import SyncConversation
from dragoman.sync.runtime import SyncRuntime, run_sync
from dragoman.sync.turn import SyncTurn

__all__ = ["SyncConversation", "SyncRuntime", "SyncTurn", "run_sync"]
