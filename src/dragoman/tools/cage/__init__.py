"""Run the programs of tools in an operating-system sandbox (docs/concepts/cage.md describes its limits)."""
