"""Serve the runtime over HTTP: an API, live streams and a web UI."""

from dragoman.installed import require

require("fastapi")
