"""Serve editors over the Agent Client Protocol on standard input and output: `dragoman acp`."""
