"""The one part pyproject.toml cannot say: optional C extensions; without a compiler, no harm."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "broker.batch._speed",
            ["broker/batch/_speed.c", "broker/batch/_speed_encode.c"],
            depends=["broker/batch/_speed.h"],
            optional=True,
        ),
        Extension("broker.client._murmur2", ["broker/client/_murmur2.c"], optional=True),
        Extension("streams.state._windows", ["streams/state/_windows.c"], optional=True),
    ],
)
