"""The runtime over HTTP: an API, live streams and a page."""
