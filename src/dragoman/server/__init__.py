"""The runtime over HTTP: an API, live streams and a page."""

from dragoman.extras import require

require("fastapi")
