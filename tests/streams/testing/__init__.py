"""Tests of what users test their applications with."""
