"""Data sets by name: what each is (`datasets.toml`), where its files come from, whether they are sound."""
