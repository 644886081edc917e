"""Reports: what people see of results in terminals and notebooks: tables and the words in them."""
