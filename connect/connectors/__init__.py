"""The connectors that come with Millstream; each sees only what a third party's would see."""
