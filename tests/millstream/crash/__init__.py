"""The whole platform is killed at random; nothing is lost or doubled."""
