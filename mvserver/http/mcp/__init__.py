"""The endpoint for assistants: the Model Context Protocol over HTTP, stateless, by the protocol's own SDK."""
