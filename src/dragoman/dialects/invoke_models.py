"""The models that write their calls as `invoke` tags do, and how each spells them."""

from __future__ import annotations

from dragoman.dialects.invoke import Invoke, InvokeTags

DEEPSEEK_DSML = InvokeTags(  # DeepSeek V3.2 and V4, which has another outer tag
    call='<｜DSML｜invoke name="',
    call_end="</｜DSML｜invoke>",
    argument='<｜DSML｜parameter name="',
    argument_end="</｜DSML｜parameter>",
    around=("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
    also=(("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),),
    between="\n",
    text='string="true"',
    other='string="false"',
    drops=("<｜end▁of▁sentence｜>",),
)

MINIMAX = InvokeTags(  # MiniMax M2; dots and Claude, where it writes them as text, have other outer tags
    call='<invoke name="',
    call_end="</invoke>",
    argument='<parameter name="',
    argument_end="</parameter>",
    around=("<minimax:tool_call>", "</minimax:tool_call>"),
    also=(
        ("<dots_function_call>", "</dots_function_call>"),
        ("<function_calls>", "</function_calls>"),
    ),
    between="\n",
)

KIMI_K3 = InvokeTags(
    call='<|open|>call tool="',
    call_end="<|close|>call<|sep|>",
    argument='<|open|>argument key="',
    argument_end="<|close|>argument<|sep|>",
    around=("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),
    head_end="<|sep|>",
    text='type="string"',
    other='type="{kind}"',
    drops=("<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"),
    thoughts={"<|open|>think<|sep|>": "<|close|>think<|sep|>"},
)

MINICPM = InvokeTags(  # MiniCPM 5
    call='<function name="',
    call_end="</function>",
    argument='<param name="',
    argument_end="</param>",
    between="\n",
    cdata=True,
    leaks=True,
)

STEP = InvokeTags(  # Step 3
    call='<steptml:invoke name="',
    call_end="</steptml:invoke>",
    argument='<steptml:parameter name="',
    argument_end="</steptml:parameter>",
    around=("<｜tool_call_begin｜>function<｜tool_sep｜>", "<｜tool_call_end｜>"),
    between="\n",
    drops=("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"),
)

MUSE = InvokeTags(  # Muse Glimmer
    call='<atem:invoke name="',
    call_end="</atem:invoke>",
    argument='<atem:parameter name="',
    argument_end="</atem:parameter>",
    around=("<atem:function_calls>", "</atem:function_calls>"),
    between="\n",
    header=("<|start|>assistant", "<|message|>"),
    drops=("<|eot|>",),
    thoughts={"to=self<|message|>": "<|eom|>"},
)

GROK = InvokeTags(  # Grok, where it writes them as text
    call='<xai:function_call name="',
    call_end="</xai:function_call>",
    argument='<parameter name="',
    argument_end="</parameter>",
    between="\n",
)

INVOKE_DIALECTS = (
    Invoke("deepseek_dsml", DEEPSEEK_DSML),
    Invoke("minimax", MINIMAX),
    Invoke("kimi_k3", KIMI_K3),
    Invoke("minicpm", MINICPM),
    Invoke("step", STEP),
    Invoke("muse", MUSE),
    Invoke("grok", GROK),
)
