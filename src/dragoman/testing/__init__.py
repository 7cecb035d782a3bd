"""For tests of programs that use Dragoman: a model that plays a script, recordings of real providers, and
what a turn is expected to have done.

    async def test_it_adds(make_runtime):
        async with make_runtime([calls("add", a=1, b=2), says("3")], tools=[add], allow=["add"]) as runtime:
            result = await (await runtime.send("What is 1 + 2?")).result()
        expect(result).called("add", a=1).answered("3")

The fixtures `make_runtime` and `recording` come with the package: pytest finds them by itself.
"""

from dragoman.testing.expect import Expectation, expect
from dragoman.testing.recording import Recording
from dragoman.wire.scripted import Line, ScriptedModel, calls, calls_with, fails, says, thinks

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
