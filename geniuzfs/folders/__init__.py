"""Folders: where they are, who they are."""
