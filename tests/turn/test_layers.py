"""The layers of a request name the source of each part (R1)."""

from __future__ import annotations

from pathlib import Path

from dragoman import Agent, Group
from dragoman.tools.tool import Tool
from dragoman.turn.steps.request_layers import offer_of
from dragoman.wire.scripted import says
from tests.runtimes import add, model_of, runtime_with


async def test_every_layer_is_named_and_the_whole_is_what_was_sent(tmp_path: Path) -> None:
    """Later layers of prompt, options and tools override earlier ones, and None removes a value (R1, R2)."""
    cook = Agent(name="cook", prompt="You cook.", options={"temperature": 0.2, "top_p": 0.5})
    sums = Group("sums", (add,), "Add rather than guess.")
    options = {"agents": [cook], "system": "Be kind.", "options": {"temperature": 0.1, "seed": 7}}
    async with runtime_with(tmp_path, [says("Hi.")], tools=[sums], **options) as runtime:  # type: ignore[arg-type]
        chat = await runtime.conversation(agent="cook", system="Speak French.", options={"seed": None})
        turn = await chat.send(
            "Hello", options={"top_p": 0.9}, tools={"output": False}, disable=["compaction"]
        )
        await turn.result()
        held = await turn.request()
        (request,) = model_of(runtime).requests
        assert "\n\n".join(text for _, text in held.system) == request.system
        assert [who for who, _ in held.system] == [
            "the day",
            "settings",
            "agent cook",
            "conversation",
            "tools",
        ]
        assert {name: who for name, _, who in held.options} == {
            "temperature": "agent cook",
            "top_p": "this send",
        }
        assert held.tools == tuple(spec.name for spec in request.tools)
        assert held.switched_off == ("output",)
        assert "compaction" not in held.plugins
        assert "privacy" in held.plugins
        assert "Speak French." in held.text()
        assert "top_p = 0.9  (this send)" in held.text()


class Waking:
    """A source whose tools are known once it was asked for changes."""

    name = "waking"
    tools: tuple[Tool, ...] = ()

    def group(self) -> Group:
        return Group(self.name, self.tools)

    async def ready(self) -> None:
        self.tools = (add,)

    async def close(self) -> None: ...


async def test_the_tools_of_a_stored_turn_are_known_before_any_other_turn(tmp_path: Path) -> None:
    """Its layers and its offer ask the sources, too (R1)."""
    async with runtime_with(tmp_path, [says("Hi.")], tools=[Waking()]) as runtime:
        turn = await runtime.send("Hello")
        await turn.result()
    async with runtime_with(tmp_path, [], tools=[Waking()]) as again:
        assert "add" in (await offer_of(again.services, turn.id)).tools
    async with runtime_with(tmp_path, [], tools=[Waking()]) as again:
        assert "add" in (await again.turn(turn.id).request()).tools
