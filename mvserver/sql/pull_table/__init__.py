"""What pull queries may call, by kind: one file each. ``pull_functions`` puts them together."""
