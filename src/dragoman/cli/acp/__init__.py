"""`dragoman acp`: an agent for editors, over the Agent Client Protocol on standard input and output."""
