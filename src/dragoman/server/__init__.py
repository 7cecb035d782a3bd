"""The runtime over HTTP: an API, live streams and a page."""

from dragoman.installed import require

require("fastapi")
