"""What whoever runs this for others sees in the tools they have: spans, metrics and lines of a log."""
