"""The operating-system sandbox that programs of tools run in: docs/concepts/cage.md says what it holds."""
