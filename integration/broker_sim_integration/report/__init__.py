"""The reports of a comparison: JSON files, an HTML page, Markdown, tables on the terminal."""
