"""Who is proven: one for all cases that compute the same (sharing.py), and nobody twice on one machine as
long as nothing that decides a proof has changed (keeping.py; key.py says what that is)."""
