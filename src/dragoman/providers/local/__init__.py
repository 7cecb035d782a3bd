"""The model in the box, and any other GGUF file: fetched, served by a child process, and led by examples."""
