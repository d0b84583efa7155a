"""JDBC: tables of SQLite, PostgreSQL, MariaDB and MySQL as topics, and topics as tables."""
