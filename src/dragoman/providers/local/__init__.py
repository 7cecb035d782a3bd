"""The model in the box, and any other GGUF file: fetched, and served by a child process."""
