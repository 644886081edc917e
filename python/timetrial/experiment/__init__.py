"""Experiments: TOML and keyword forms become validated cases, and cases become launches."""
