"""What makes timings restless on this machine: each thing that is known to, in words, with advice."""

from timetrial.noise.advice import advice_for, poor_gain, two_threads_over_one
from timetrial.noise.check import NoiseFinding, check_noise

__all__ = ["NoiseFinding", "advice_for", "check_noise", "poor_gain", "two_threads_over_one"]
