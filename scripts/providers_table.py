"""Generate the table of providers in `docs/reference/providers.md` from the catalog, between the two marks.

python scripts/providers_table.py docs/reference/providers.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from dragoman.providers.catalog import Provider, load_catalog

BEGIN = "<!-- made by `python scripts/providers_table.py`: change the catalog, not this -->"
END = "<!-- the table ends -->"
SIGNS_IN = {"key": "", "aws": "AWS identity", "google": "Google identity", "entra": "Entra identity"}


def table() -> str:
    rows = (row(provider) for provider in load_catalog().providers.values())
    return "\n".join(
        [BEGIN, "", "| name | who | variables | without any named |", "|---|---|---|---|", *rows, "", END]
    )


def row(provider: Provider) -> str:
    ways = [*(f"`{name}`" for name in provider.keys), *filter(None, [SIGNS_IN[provider.auth]])]
    optional = " (optional)" if provider.local and ways else ""
    default = f"`{provider.default}`" if provider.default else ""
    return f"| `{provider.name}` | {provider.title} | {', '.join(ways)}{optional} | {default} |"


def rewrite(text: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{table()}{after}"


def main(pages: Iterator[str]) -> None:
    for page in map(Path, pages):
        page.write_text(rewrite(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(iter(sys.argv[1:]))
