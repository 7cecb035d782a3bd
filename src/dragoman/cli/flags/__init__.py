"""What can be typed after `dragoman`: the parameters and help of each command.

Every start imports these files, so they import nothing heavy. `command.py` reads annotations when a class is
made: these files do without `from __future__ import annotations`.
"""
