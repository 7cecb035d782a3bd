"""The adapter that taught the model in the box to call tools: a file of this package, checked by its hash.

`training/` at the root of the repository makes it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from dragoman.errors import ConfigError

IN_THE_PACKAGE = "smollm2-tools.gguf"
SHA256 = "e1db006812532e8c95f3474c79fc1746a3303004d029d8399b0452acbef62647"


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
        raise ConfigError(f"{file} is missing: install Dragoman again") from None
    if digest != SHA256:
        raise ConfigError(f"{file} is not the file that came with Dragoman: install it again")
