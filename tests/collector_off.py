"""The first that is imported where everything is (`forks.py`): nothing of that is ever given back, and the
collector would go through it again and again."""

from __future__ import annotations

import gc

gc.disable()  # until `preloaded.py` is through
