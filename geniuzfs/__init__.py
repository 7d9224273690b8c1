"""Memories as files: a mount that keeps every byte and learns what the text says."""

__version__ = "0.1.0"
