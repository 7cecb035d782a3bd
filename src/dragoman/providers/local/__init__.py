"""Download and serve the bundled model, and any other GGUF file, with a child process."""
