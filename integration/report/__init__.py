"""What a comparison leaves: files, a page, a summary, tables on the terminal."""
