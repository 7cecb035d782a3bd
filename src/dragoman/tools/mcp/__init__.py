"""Tools of servers that speak the Model Context Protocol. Imported where one is used."""
