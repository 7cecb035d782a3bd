"""Turn the garbage collector off before the imports of a process that imports everything (`forks.py`).

None of the imported objects is ever freed, and the collector would scan them repeatedly.
"""

from __future__ import annotations

import gc

gc.disable()  # until `preloaded.py` is through
