"""Reports: what people see of results. Tables for terminals and notebooks, figures."""
