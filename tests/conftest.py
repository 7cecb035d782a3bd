"""For every test: what is compiled is kept, since hundreds of processes are started from here."""

import os
import sys

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
