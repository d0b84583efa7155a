"""Test scenarios of ksqlDB clients, which run in their own environments."""
