"""The operating-system sandbox that programs of tools run in: docs/cage.md says what it holds."""
