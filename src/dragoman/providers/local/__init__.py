"""The model in the box, and any other GGUF file: fetched, served by a child process, guided by examples."""
