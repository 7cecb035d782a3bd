"""The built-in catalog and a user's additions map models to providers (W2)."""

from __future__ import annotations

import runpy
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects.dialect import NAMES
from dragoman.errors import ConfigError, NotFound
from dragoman.providers.catalog import Catalog, Provider, Traits, load_catalog
from dragoman.providers.catalog_tables import any_fits
from dragoman.providers.compatible import OpenAICompatible
from dragoman.providers.wires import WIRES
from dragoman.tools.mcp.servers import McpServer
from dragoman.wire.auth.auth import NO_KEY
from dragoman.wire.endpoint import ENDPOINTS, SHAPES

EVERYBODY = {
    "openai", "anthropic", "google", "azure", "azure-responses", "openrouter", "deepseek", "groq", "mistral",
    "xai", "zai", "zhipu", "moonshot", "moonshot-cn", "qwen", "qwen-cn", "together", "fireworks", "cerebras",
    "perplexity", "cohere", "huggingface", "nvidia", "sambanova", "minimax", "minimax-cn", "stepfun",
    "siliconflow", "siliconflow-cn", "volcengine", "tencent", "baidu", "github", "deepinfra", "novita",
    "nebius", "baseten", "meta", "mimo", "vercel", "cloudflare", "databricks", "snowflake", "ollama-cloud",
    "litellm", "bedrock", "bedrock-converse", "bedrock-openai", "bedrock-mantle", "bedrock-gpt",
    "vertex", "vertex-claude", "ollama", "lmstudio", "vllm", "sglang", "llamacpp", "local",
}  # fmt: skip


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def written(folder: Path, text: str) -> Path:
    file = folder / "dragoman.toml"
    file.write_text(text)
    return file


# ── the one that is built in ──────────────────────────────────────────────────────────────────────


def test_everybody_is_there_with_a_title_an_address_and_a_wire_we_speak(catalog: Catalog) -> None:
    assert set(catalog.providers) == EVERYBODY
    for provider in catalog.providers.values():
        assert provider.title
        assert provider.base_url or provider.base_url_from
        assert provider.wire in WIRES
        assert set(WIRES) == set(ENDPOINTS)
        assert provider.endpoint is None or (provider.endpoint, provider.wire) in SHAPES


def test_only_servers_on_this_machine_work_without_a_key(catalog: Catalog) -> None:
    assert not catalog.providers["local"].keys  # the bundled model: it has no server before the first request
    for provider in catalog.providers.values():
        if provider.name == "local":
            continue
        assert provider.keys
        assert provider.local == provider.base_url.startswith("http://127.0.0.1:")
        assert provider.local or not provider.base_url or provider.base_url.startswith("https://")


def test_every_pattern_can_be_reached_by_some_name(catalog: Catalog) -> None:
    for provider in catalog.providers.values():
        for pattern, sent in provider.models.items():
            traits = catalog.traits(replace(provider, facts=()), pattern.replace("*", "x"))
            assert traits.context == sent.get("context"), f"{provider.name}/{pattern} is hidden by another"
            assert traits.tools in ("native", *NAMES)


@pytest.mark.parametrize(
    ("name", "traits"),
    [
        (
            "openai/gpt-4o-mini",
            Traits(128_000, ("text", "image", "file"), spills="none", reasoning="apart"),
        ),
        ("ollama/gemma3:4b", Traits(tools="xml_tag")),
        ("ollama/qwen3:8b", Traits(spills="hermes")),
        ("vllm/Qwen/Qwen3-4B-Thinking-2507", Traits(spills="hermes", reasoning="inside")),
        ("together/Qwen/Qwen3-Coder-480B", Traits(spills="qwen_coder")),
        ("lmstudio/never-received-of-it", Traits()),
        ("vllm/deepseek-ai/DeepSeek-V3.2", Traits(spills="deepseek_dsml")),
        ("vllm/deepseek-ai/DeepSeek-V3.1", Traits(spills="deepseek")),
        ("vllm/MiniMaxAI/MiniMax-M2", Traits(spills="minimax")),
        ("vllm/moonshotai/Kimi-K3", Traits(spills="kimi_k3")),
        ("ollama/gemma4:e4b", Traits(spills="gemma")),
        ("vllm/Qwen/Qwen3.6-35B-A3B", Traits(spills="qwen_coder")),
        ("vllm/deepseek-ai/DeepSeek-V4.1", Traits(spills="deepseek_dsml")),
        ("vllm/nvidia/Llama-3.3-Nemotron-Super-49B-v1.5", Traits(spills="json_tags")),
        ("vllm/meetkai/functionary-small-v3.2", Traits(spills="functionary")),
        ("vllm/microsoft/Phi-4-mini-instruct", Traits(spills="json_tags")),
        ("vllm/ibm-granite/granite-20b-functioncalling", Traits(spills="json_tags")),
        ("vllm/ServiceNow-AI/Apriel-1.5-15b-Thinker", Traits(spills="json_tags")),
        ("vllm/fireworks-ai/firefunction-v2", Traits(spills="json_tags")),
        ("vllm/naver-hyperclovax/HyperCLOVAX-SEED-Think-14B", Traits(spills="json_tags")),
        ("vllm/acme/of-which-nobody-knows", Traits(spills="ask")),
        ("ollama/functiongemma:270m", Traits(spills="functiongemma")),
        ("vllm/allenai/Olmo-3-7B-Instruct", Traits(spills="olmo")),
        ("vllm/stepfun-ai/Step-3.5-Flash", Traits(spills="qwen_coder")),
        ("deepseek/deepseek-chat", Traits(131_072, spills="deepseek_dsml", reasoning="apart")),
    ],
)
def test_a_model_is_known_by_its_provider_its_family_and_its_name(
    name: str, traits: Traits, catalog: Catalog
) -> None:
    provider, model = catalog.find(name)
    assert catalog.traits(provider, model) == traits


# ── names ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_model_may_have_slashes_in_its_name(catalog: Catalog) -> None:
    provider, model = catalog.find("openrouter/anthropic/claude-opus-5")
    assert (provider.name, model) == ("openrouter", "anthropic/claude-opus-5")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("opnai/gpt-4o", r"Unknown provider 'opnai'. Did you mean openai"),
        ("nobody/x", r"Run `dragoman models` to list.* \[providers\.nobody\], or pass a base URL"),
        ("gpt-4o", r"Unknown model 'gpt-4o'. Did you mean openai/gpt-4o or azure/gpt-4o\?"),
        ("never-received-of-it", r"Write it as PROVIDER/MODEL"),
        ("openai/", r"Unknown model 'openai/'"),
    ],
)
def test_a_name_that_is_not_there_is_answered_with_what_is_near(
    name: str, says: str, catalog: Catalog
) -> None:
    with pytest.raises(NotFound, match=says):
        catalog.find(name)


def test_an_address_that_only_the_person_knows_comes_from_the_environment(catalog: Catalog) -> None:
    azure = catalog.providers["azure"]
    assert azure.address({"AZURE_OPENAI_ENDPOINT": "https://mine.example"}) == "https://mine.example"
    with pytest.raises(ConfigError, match="Set AZURE_OPENAI_ENDPOINT"):
        azure.address({})
    for address in ("https://mine.example", "https://mine.example/", "https://mine.example/openai/v1/"):
        url = azure.reached(address, NO_KEY).url("dep")
        assert url == "https://mine.example/openai/v1/chat/completions"


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("vertex/gemini-3-pro", "vertex"),
        ("vertex/claude-sonnet-4-5@20250929", "vertex-claude"),
        ("bedrock/us.anthropic.claude-opus-4-7", "bedrock"),
        ("bedrock/arn:aws:bedrock:eu-west-1:1:inference-profile/x", "bedrock"),
        ("bedrock/openai.gpt-oss-120b-1:0", "bedrock-openai"),
        ("bedrock/global.openai.gpt-6-sol", "bedrock-openai"),
        ("bedrock/openai.gpt-5.5", "bedrock-gpt"),
        ("bedrock/deepseek.v3.1", "bedrock-mantle"),
        ("bedrock/us.amazon.nova-2-lite-v1:0", "bedrock-converse"),
        ("bedrock/meta.llama4-scout-17b-instruct-v1:0", "bedrock-converse"),
        ("bedrock/us.deepseek.v3.2", "bedrock-converse"),
        ("bedrock/us.anthropic.claude-opus-4-5-20251101-v1:0", "bedrock"),
    ],
)
def test_a_model_of_a_cloud_goes_to_the_table_of_its_protocol(
    name: str, provider: str, catalog: Catalog
) -> None:
    found, model = catalog.find(name)
    assert (found.name, model) == (provider, name.partition("/")[2])


# ── what a person adds ────────────────────────────────────────────────────────────────────────────


def test_w2_a_provider_of_ones_own_is_a_few_lines(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """
        title = "tables that are not ours are left alone"
        [providers.mine]
        base_url = "https://llm.example.org/v1"
        keys = "MINE_KEY"
        headers = { X-Team = "very secret team" }
        quirks = { max_tokens_field = "max_tokens" }
        [providers.mine.models]
        "big-*" = { context = 32_000, tools = "hermes", options = { temperature = 0 } }
        """,
    )
    catalog = load_catalog(file)
    provider, model = catalog.find("mine/big-one")
    assert (provider.title, provider.keys, provider.wire) == ("mine", ("MINE_KEY",), "openai_chat")
    assert provider.quirks.max_tokens_field == "max_tokens"
    assert catalog.traits(provider, model) == Traits(32_000, tools="hermes", options={"temperature": 0})
    assert "secret" not in repr(catalog)
    assert provider.reached("https://x", NO_KEY).headers == {"X-Team": "very secret team"}


def test_what_is_built_in_can_be_changed_in_part(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """
        [providers.mistral]
        base_url = "https://proxy.example/v1"
        quirks = { no_strict = true }
        [providers.mistral.models]
        "mistral-large*" = { context = 5 }
        [families]
        "qwen*" = { tools = "hermes" }
        """,
    )
    catalog = load_catalog(file)
    mistral = catalog.providers["mistral"]
    assert (mistral.base_url, mistral.keys) == ("https://proxy.example/v1", ("MISTRAL_API_KEY",))
    assert (mistral.quirks.tool_ids, mistral.quirks.no_strict) == ("mistral", True)
    assert catalog.traits(mistral, "mistral-large-4").context == 5  # a person's patterns come first
    assert catalog.traits(mistral, "codestral").context == 256_000
    assert catalog.traits(catalog.providers["ollama"], "qwen3").tools == "hermes"


def test_a_provider_can_be_added_by_a_program(catalog: Catalog) -> None:
    added = catalog.with_provider(Provider("here", "Here", "http://127.0.0.1:9/v1"))
    assert added.find("here/m")[0].base_url == "http://127.0.0.1:9/v1"
    assert "here" not in catalog.providers


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[providers.mine]\nkeys = "K"', r"providers\.mine: its base_url is missing"),
        (
            '[providers.mine]\nbase_url = "llm.example"',
            r"mine\.base_url: an address begins with http",
        ),
        ("[providers.mine]\ncolour = 1", r"providers\.mine\.colour: unknown key"),
        ("[providers.openai]\ntitle = 1", r"providers\.openai\.title: input should be a valid string"),
        ("[providers.openai]\nkeys = 1", r"providers\.openai\.keys: input should be a valid list"),
        ('[providers.openai]\nwire = "smoke"', r"providers\.openai\.wire: input should be 'openai_chat'"),
        ("[providers.openai.quirks]\nodd = true", r"providers\.openai\.quirks\.odd: unknown quirk"),
        ('[providers.openai.quirks]\nno_strict = "yes"', r"quirks\.no_strict: its type is bool"),
        ('[providers."my own"]\nbase_url = "http://x"', r'providers\."my own": the name of a provider'),
        (
            '[providers.openai.models]\n"a-*" = { context = "big" }',
            r'providers\.openai\.models\."a-\*"\.context: input should be a valid integer',
        ),
        (
            '[families]\n"a" = { tools = "sign" }',
            r"families\.a\.tools: choose 'native', or a dialect: json",
        ),
        ('[providers.openai.routes]\n"a*" = "nobody"', r"openai\.routes: unknown provider 'nobody'"),
        ("providers = 1", r"providers: input should be a valid dictionary"),
        ("[providers", r"is not valid TOML: Expected"),
    ],
)
def test_a_mistake_is_told_with_its_file_table_and_key(text: str, says: str, tmp_path: Path) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigError, match=says) as raised:
        load_catalog(file)
    assert str(file) in str(raised.value)


NO_ADDRESSES = (
    "http://[::1",
    "http://h:99999/v1",
    "http://h:abc/v1",
    "http://",
    "http://h x/v1",
    "http://a℀b/",
)


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_an_address_at_which_no_server_can_be_is_told_at_every_door(address: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"mine\.base_url: an address begins with http"):
        load_catalog(written(tmp_path, f'[providers.mine]\nbase_url = "{address}"'))
    with pytest.raises(ConfigError, match="is not an address such as"):
        OpenAICompatible(address, "m")
    with pytest.raises(ConfigError, match="MINE_URL is not a valid address"):
        Provider("mine", "Mine", base_url_from=("MINE_URL",)).address({"MINE_URL": address})
    with pytest.raises(ValueError, match="an address begins with http"):
        McpServer(url=address)


@pytest.mark.parametrize(
    "address", ["http://localhost:${PORT}/v1", "https://${HOST:-x}:${PORT}", "http://${HOST}/v1"]
)
def test_a_host_and_a_port_may_be_filled_in_later(address: str, tmp_path: Path) -> None:
    catalog = load_catalog(written(tmp_path, f'[providers.mine]\nbase_url = "{address}"'))
    assert catalog.providers["mine"].base_url == address
    assert McpServer(url=address).url == address


def test_a_key_written_where_its_variable_belongs_is_not_repeated(tmp_path: Path) -> None:
    file = written(tmp_path, '[providers.openai]\nkeys = "sk-proj-0123456789"')
    with pytest.raises(ConfigError, match=r"keys\.0: .* never the key itself") as raised:
        load_catalog(file)
    assert "0123456789" not in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*none\.toml"):
        load_catalog(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("name", "listed", "modalities"),
    [
        ("deepseek/deepseek-chat", True, ("text",)),  # in the catalog, with its context
        ("openai/gpt-99", True, ("text", "image", "file")),  # as its provider has it
        ("ollama/llava", False, ("text",)),  # nobody knows
        ("vllm/qwen3-vl", False, ("text",)),  # a family says nothing of files
    ],
)
def test_m2_what_a_model_takes_is_known_where_somebody_said_it(
    name: str, listed: bool, modalities: tuple[str, ...]
) -> None:
    catalog = load_catalog()
    traits = catalog.traits(*catalog.find(name))
    assert (traits.listed, traits.modalities) == (listed, modalities)


def test_m2_a_context_in_the_settings_says_nothing_of_files(tmp_path: Path) -> None:
    """Its server decides: text alone holds only where `modalities` says so."""
    file = tmp_path / "dragoman.toml"
    file.write_text(
        '[providers.mine]\nbase_url = "http://localhost:1/v1"\n'
        "[providers.mine.models]\nsees = { context = 9000 }\n"
        'reads = { context = 9000, modalities = ["text"] }\n'
    )
    catalog = load_catalog(file)
    assert not catalog.traits(*catalog.find("mine/sees")).listed
    assert catalog.traits(*catalog.find("mine/reads")).listed
    assert [one.name for one in catalog.providers.values() if one.custom] == ["mine"]


@given(st.text("aAb*?[]!-", max_size=7), st.text("aAb*[]!-", max_size=7))
def test_a_pattern_fits_what_it_fits_in_a_shell(pattern: str, name: str) -> None:
    """W1"""
    assert any_fits([pattern], name) == fnmatchcase(name.lower(), pattern.lower())


# ── the docs ──────────────────────────────────────────────────────────────────────────────────────


def test_the_docs_list_every_provider_of_the_catalog(catalog: Catalog) -> None:
    root = Path(__file__).parents[2]
    script = root / "scripts" / "providers_table.py"
    page = (root / "docs" / "reference" / "providers.md").read_text("utf-8")
    rewrite = runpy.run_path(str(script))["rewrite"]
    assert page == rewrite(page), "run: python scripts/providers_table.py docs/reference/providers.md"
