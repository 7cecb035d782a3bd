"""The adapter that taught the model in the box to call tools: a file of this package, checked by its hash.

`extras/training/` at the root of the repository makes it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from dragoman.errors import ConfigError
from dragoman.sentences import sentence

IN_THE_PACKAGE = "smollm2-tools.gguf"
SHA256 = "4e85218347a6c1808664e049c0ee4e79cd9ab63220b6860da14a9c87d1603de3"


def find_adapter(named: str) -> Path:
    """The file of an adapter: the one that comes with Dragoman by its name, any other by its path."""
    if named != IN_THE_PACKAGE:
        return Path(named).expanduser()
    file = Path(__file__).with_name(IN_THE_PACKAGE)
    check_hash(file)
    return file


def check_hash(file: Path) -> None:
    """ConfigError unless it is the file that came with Dragoman."""
    try:
        with file.open("rb") as data:
            digest = hashlib.file_digest(data, "sha256").hexdigest()
    except FileNotFoundError:
        raise ConfigError(sentence("local.missing", file=file)) from None
    if digest != SHA256:
        raise ConfigError(sentence("local.damaged", file=file))
