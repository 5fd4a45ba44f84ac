"""The functions that pull queries may call, by kind: one file each. ``pull_functions`` puts them together."""
