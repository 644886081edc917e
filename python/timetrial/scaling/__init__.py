"""What a step costs against its size: fitted lines, and the largest batch that fits in memory."""

from timetrial.scaling.largest import LargestBatch, LargestBatches, largest_batch
from timetrial.scaling.lines import Lines, SizeLine, lines_of

__all__ = ["LargestBatch", "LargestBatches", "Lines", "SizeLine", "largest_batch", "lines_of"]
