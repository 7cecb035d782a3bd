"""Help tests of programs that use Dragoman: a model that plays a script, recordings of real providers, and
assertions about a turn.

    async def test_it_adds(make_runtime):
        async with make_runtime([calls("add", a=1, b=2), says("3")], tools=[add], allow=["add"]) as runtime:
            result = await (await runtime.send("What is 1 + 2?")).result()
        expect(result).called("add", a=1).answered("3")

The fixtures `make_runtime` and `recording` come with the package. pytest finds them automatically.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.testing.expectations import Expectation, expect
    from dragoman.testing.recording import Recording
    from dragoman.wire.scripted import Line, ScriptedModel, calls, calls_with, fails, says, thinks

# Each name is imported on first use: every pytest run loads the plugin in this package, but few use it.
_HOME = {
    "Expectation": "dragoman.testing.expectations",
    "Line": "dragoman.wire.scripted",
    "Recording": "dragoman.testing.recording",
    "ScriptedModel": "dragoman.wire.scripted",
    "calls": "dragoman.wire.scripted",
    "calls_with": "dragoman.wire.scripted",
    "expect": "dragoman.testing.expectations",
    "fails": "dragoman.wire.scripted",
    "says": "dragoman.wire.scripted",
    "thinks": "dragoman.wire.scripted",
}

__all__ = [
    "Expectation",
    "Line",
    "Recording",
    "ScriptedModel",
    "calls",
    "calls_with",
    "expect",
    "fails",
    "says",
    "thinks",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'dragoman.testing' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
