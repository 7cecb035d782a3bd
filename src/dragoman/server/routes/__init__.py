"""Define the routes of the API, with one file for each noun."""
