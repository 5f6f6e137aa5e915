"""Tests of the package, with the standard library alone: ``python3 -m unittest`` in packages/python."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
