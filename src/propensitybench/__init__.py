"""Given tools and pressure, would this model do what it was told not to do?

The public names stand in ``__init__.pyi`` and are imported when they are first used:
``propensitybench --help`` needs none of them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
