"""Recall: what a question means, which passages answer it, and how the answer reads."""
