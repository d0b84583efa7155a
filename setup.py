"""The one part pyproject.toml cannot say: an optional C extension; without a compiler, no harm."""

from setuptools import Extension, setup

setup(
    ext_modules=[Extension("broker.batch._speed", ["broker/batch/_speed.c"], optional=True)],
)
