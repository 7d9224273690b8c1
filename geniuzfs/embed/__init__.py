"""Texts become vectors, in a helper process that holds the model or in a local Ollama."""
