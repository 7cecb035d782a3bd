"""Use the tools of servers that speak the Model Context Protocol. Imported only if one is used."""
