"""Check that texts for users get no harder to read: the counts of `tests/readability.py` can only fall."""

from __future__ import annotations

import json

import pytest

from tests.readability import BASELINE, Page, markdown, pages

STORED: dict[str, dict[str, int]] = json.loads(BASELINE.read_text("utf-8"))


@pytest.mark.parametrize("page", [*pages()], ids=lambda page: page.name)
def test_a_page_misses_the_style_no_oftener_than_before(page: Page) -> None:
    """After a rewrite, store the lower counts: `python -m tests.readability --write`."""
    stored = STORED.get(page.name, {})
    found: dict[str, list[str]] = {}
    for finding in page.findings():
        found.setdefault(finding.kind, []).append(f"{finding.sentence} ({finding.hint})")
    for kind, sentences in found.items():
        assert len(sentences) <= stored.get(kind, 0), "\n".join([f"{page.name}: {kind}", *sentences])


def test_each_kind_is_found() -> None:
    text = """\
Who reads this? The file is read; it goes on, and what comes after it is stored by somebody else.

```python
what = "is read; somebody"
```

You set the option `is read; anew` in [a file](x.md).
"""
    page = markdown("x", text)
    assert page.counts() == {"stand-in": 2, "passive": 2, "semicolon": 1, "house word": 2}
    assert (page.blocks, page.you) == (1, 1)
