"""All that a tool may import from the runtime."""
