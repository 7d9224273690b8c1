"""The mount: the one door that speaks FUSE, and the one place that is async."""
