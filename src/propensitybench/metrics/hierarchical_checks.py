"""Whether the chains of a sampler have converged, and how much their draws are worth.

Rank-normalised split R-hat and bulk effective sample size (Vehtari et al. 2021, doi 10.1214/20-BA1221).
"""

from typing import Final

import msgspec
import numpy as np

from propensitybench.metrics.arrays import Numbers

MAX_R_HAT: Final = 1.01
MIN_DRAWS: Final = 400


class Sampling(msgspec.Struct, frozen=True):
    """The checks of the draws, which every fit has passed.

    Attributes:
        chains, draws: number of chains, and of draws over all of them.
        r_hat: largest over all parameters but scenarios; below 1.01 if the chains agree.
        effective_draws: smallest bulk effective sample size; more than 400.
        divergences: number of failed integrations; none.
    """

    chains: int
    draws: int
    r_hat: float
    effective_draws: float
    divergences: int

    @property
    def passed(self) -> bool:
        """Whether the draws can be relied on."""
        return self.r_hat < MAX_R_HAT and self.effective_draws > MIN_DRAWS and not self.divergences


def r_hat(draws: Numbers) -> float:
    """The larger of the rank-normalised split R-hat of the draws and of their distances from the median.

    Near 1 if the chains agree; `nan` if the draws do not vary.

    Args:
        draws: of one quantity, shape (chains, draws).
    """
    halves = _split(draws)
    folded = np.abs(halves - np.median(halves))
    return max(_r_hat(_normal_scores(halves)), _r_hat(_normal_scores(folded)))


def bulk_ess(draws: Numbers) -> float:
    """Number of independent draws that estimate the centre of the distribution equally well.

    Args:
        draws: of one quantity, shape (chains, draws).
    """
    scores = _normal_scores(_split(draws))
    chains, count = scores.shape
    centred = scores - scores.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(centred, 2 * count, axis=1)) ** 2
    covariance = np.fft.irfft(power, axis=1)[:, :count] / count
    within = float(covariance[:, 0].mean()) * count / (count - 1)
    total = within * (count - 1) / count + float(scores.mean(axis=1).var(ddof=1))
    if not total > 0:
        return float("nan")
    correlation = 1 - (within - covariance.mean(axis=0)) / total
    correlation[0] = 1.0
    # Sums of neighbouring pairs are positive and falling in a reversible chain (Geyer 1992).
    pairs = correlation[: count // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: negative[0] if len(negative) else None])
    time = max(-1 + 2 * float(pairs.sum()), 1 / np.log10(chains * count))
    return float(chains * count / time)


def _split(draws: Numbers) -> Numbers:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normal_scores(draws: Numbers) -> Numbers:
    from scipy.special import ndtri  # scipy is slow to import
    from scipy.stats import rankdata

    ranks = rankdata(draws, axis=None).reshape(draws.shape)
    return np.asarray(ndtri((ranks - 0.375) / (draws.size + 0.25)))


def _r_hat(scores: Numbers) -> float:
    count = scores.shape[1]
    within = float(scores.var(axis=1, ddof=1).mean())
    between = float(scores.mean(axis=1).var(ddof=1))
    return float(np.sqrt((within * (count - 1) / count + between) / within)) if within > 0 else float("nan")
