"""Settings of processes and libraries: how each is applied, read back, and judged by the kernel as well."""
