"""Addresses that only the person can complete: a region, a project, an account."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.errors import ConfigError
from dragoman.providers.catalog import load_catalog
from dragoman.providers.sign_in import Keys, reach
from dragoman.wire.auth.aws import AwsAuth

PROJECT = {"GOOGLE_CLOUD_PROJECT": "p-1"}


@pytest.mark.parametrize(
    ("name", "environment", "address"),
    [
        ("bedrock", {}, "https://bedrock-runtime.us-east-1.amazonaws.com"),
        ("bedrock", {"AWS_DEFAULT_REGION": "eu-west-1"}, "https://bedrock-runtime.eu-west-1.amazonaws.com"),
        (
            "bedrock",
            {"AWS_REGION": "eu-west-3", "AWS_DEFAULT_REGION": "eu-west-1"},
            "https://bedrock-runtime.eu-west-3.amazonaws.com",
        ),
        ("vertex", PROJECT, "https://aiplatform.googleapis.com/v1/projects/p-1/locations/global"),
        (
            "vertex",
            {**PROJECT, "GOOGLE_CLOUD_LOCATION": "europe-west4"},
            "https://europe-west4-aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west4",
        ),
        (
            "vertex-claude",
            {"ANTHROPIC_VERTEX_PROJECT_ID": "p-2", **PROJECT, "CLOUD_ML_REGION": "eu"},
            "https://aiplatform.eu.rep.googleapis.com/v1/projects/p-2/locations/eu",
        ),
        ("azure", {"AZURE_RESOURCE_NAME": "mine"}, "https://mine.openai.azure.com"),
        (
            "azure",
            {"AZURE_RESOURCE_NAME": "mine", "AZURE_OPENAI_ENDPOINT": "https://other.example/"},
            "https://other.example/",
        ),
        (
            "databricks",
            {"DATABRICKS_HOST": "https://adb-1.azuredatabricks.net/"},
            "https://adb-1.azuredatabricks.net/serving-endpoints",
        ),
        (
            "cloudflare",
            {"CLOUDFLARE_ACCOUNT_ID": "abc"},
            "https://api.cloudflare.com/client/v4/accounts/abc/ai/v1",
        ),
    ],
)
def test_an_address_is_filled_from_the_first_variable_that_is_set(
    name: str, environment: dict[str, str], address: str
) -> None:
    assert load_catalog().providers[name].address(environment) == address


@pytest.mark.parametrize(
    ("name", "environment", "says"),
    [
        ("azure", {}, "Set AZURE_OPENAI_ENDPOINT or AZURE_API_BASE or AZURE_RESOURCE_NAME to yours"),
        ("vertex", {}, "Vertex .* Set GOOGLE_CLOUD_PROJECT or GOOGLE_VERTEX_PROJECT"),
        ("snowflake", {}, "Set SNOWFLAKE_ACCOUNT or SNOWFLAKE_ACCOUNT_ID to yours"),
        ("vertex", {"GOOGLE_CLOUD_PROJECT": "p/../../evil"}, "GOOGLE_CLOUD_PROJECT cannot be part"),
        ("bedrock", {"AWS_REGION": "x.evil.example/#"}, "AWS_REGION cannot be part of the address"),
        ("azure", {"AZURE_RESOURCE_NAME": "a@evil"}, "AZURE_RESOURCE_NAME cannot be part"),
    ],
)
def test_a_variable_that_is_missing_or_cannot_be_right_is_named(
    name: str, environment: dict[str, str], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        load_catalog().providers[name].address(environment)


@pytest.mark.parametrize(
    ("name", "service", "region"),
    [
        ("bedrock", "bedrock", "eu-west-1"),
        ("bedrock-openai", "bedrock", "eu-west-1"),
        ("bedrock-mantle", "bedrock-mantle", "eu-west-1"),
        ("bedrock-gpt", "bedrock-mantle", "eu-west-1"),
    ],
)
def test_a_request_is_signed_for_the_service_and_region_of_its_address(
    name: str, service: str, region: str
) -> None:
    environment = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": region}
    auth = reach(load_catalog().providers[name], Keys(environment=environment, use_keyring=False)).auth
    assert isinstance(auth, AwsAuth)
    assert (auth.service, auth.region) == (service, region)


def test_the_region_of_an_address_wins_over_the_environment() -> None:
    private = "https://vpce-1.bedrock-runtime.us-west-2.vpce.amazonaws.com"
    environment = {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_REGION": "eu-west-1",
        "AWS_BEDROCK_RUNTIME_ENDPOINT": private,
    }
    auth = reach(load_catalog().providers["bedrock"], Keys(environment=environment, use_keyring=False)).auth
    assert isinstance(auth, AwsAuth)
    assert auth.region == "us-west-2"


# ── a project's file ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[providers.evil]\nbase_url = "https://e.example/v1"\nauth = "google"', r"evil\.auth: .*your own"),
        ('[providers.bedrock]\nauth = "aws"', r"bedrock\.auth: set how to sign in in your own settings"),
        ('[providers.evil]\nbase_url = "https://e.example/${OPENAI_API_KEY}"', "without variables"),
        ('[providers.openai.routes]\n"*" = "groq"', r"openai\.routes: set routes in your own"),
    ],
)
def test_a_projects_file_takes_no_account_and_no_variable(text: str, says: str, tmp_path: Path) -> None:
    """Otherwise an access token, or a variable's value, could go to any address that the file names (P11)."""
    file = tmp_path / "dragoman.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=says):
        load_catalog(project=file)
    load_catalog(file)  # the same in a person's own file


@pytest.mark.parametrize("name", ["bedrock", "vertex", "azure", "openai"])
def test_a_projects_file_that_moves_a_provider_gets_neither_its_keys_nor_its_account(
    name: str, tmp_path: Path
) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[providers.{name}]\nbase_url = "https://evil.example/v1"\n')
    moved = load_catalog(project=file).providers[name]
    assert (moved.keys, moved.auth) == ((), "key")
    own = load_catalog(file).providers[name]
    assert (own.keys, own.auth) == (load_catalog().providers[name].keys, load_catalog().providers[name].auth)
