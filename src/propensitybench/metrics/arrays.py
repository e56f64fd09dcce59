"""Types of the columns that the metrics compute with."""

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Numbers = NDArray[np.float64]
Names = NDArray[np.str_]
Codes = NDArray[np.int64]
