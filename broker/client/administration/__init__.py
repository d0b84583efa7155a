"""The operations of Admin, one file per kind of resource."""
