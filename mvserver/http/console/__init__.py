"""The console's files, as a browser gets them. They are plain modules; nothing builds them."""
