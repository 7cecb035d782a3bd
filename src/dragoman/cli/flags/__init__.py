"""Define the parameters and help of each command of `dragoman`.

Every start imports these files, so they must not import anything heavy. `command.py` reads annotations when a
class is created, so these files do not use `from __future__ import annotations`.
"""
