"""Rows of columns as bytes in each format of SQL, and the schemas registered for them."""
