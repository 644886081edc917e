"""The smallest cap on memory under which a training step still runs."""

from timetrial.fitting.fitted import Fit, Fits
from timetrial.fitting.fitting import fits

__all__ = ["Fit", "Fits", "fits"]
