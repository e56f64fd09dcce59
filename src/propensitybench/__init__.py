"""Given tools and pressure, would this model do what it was told not to do?

The public names stand in ``__init__.pyi`` and are imported when they are first used:
``propensitybench --help`` needs none of them.
"""

from importlib.metadata import version

import lazy_loader

_imported, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    return version(__name__) if name == "__version__" else _imported(name)
