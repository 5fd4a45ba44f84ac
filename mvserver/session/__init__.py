"""The session room: what a connected client may say, and in which order. Start at ``backend`` and at the README."""
