"""Data directories of earlier versions open and go on."""
