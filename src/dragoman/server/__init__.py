"""The house over HTTP: an API, live streams and a page."""
