"""What the columns of printed tables are, in words that the reference prints.

A title that ends in `...` begins so: what follows depends on the experiment.
"""

from __future__ import annotations

from timetrial.report.more_columns import MORE_COLUMNS

RUN_TITLES = {
    "backend": "who computes: a backend, or the function that makes a step",
    "threads": "threads asked",
    "... kernel": "beside a library that varies: the kernels that it chose for this CPU",
    "step": "what a step takes when nobody disturbs, over launches, with half of its 95 % interval",
    "vs ...": "step time against the reference at the same threads, from ratios within rounds, with its 95 % "
    "interval; `inconclusive`: it holds 1; `unproven`: one of both was not shown to compute the network",
    "alike": "rows that share a letter cannot be told apart, all rows against each other",
    "of peak": "nominal work of a step over the f32 multiply-add peak that was measured just before",
    "memory": "most private memory that was held while steady, without mapped files and what is shared, from "
    "the kernel",
    **{one.title: f"{one.words} (`--columns {name}`)" for name, one in MORE_COLUMNS.items()},
    "accuracy": "on test images after training, for new seeds and new images, with half of its 95 % interval",
}

RACE_TITLES = {
    "base, challenger": "what the side is: others are compared with the base",
    "name": "the side: what tells it apart from the others",
    "level": "the metric with half of its 95 % interval; a challenger's is the base's times the ratio",
    "verdict": "faster, slower, leaner, the same or inconclusive, with the interval of the effect",
    "pairs": "on how many pairs of launches the verdict stands",
}

PROFILE_TITLES = {
    "layer": "name of the node in the network",
    "kind": "what it computes",
    "direction": "forward, loss, backward, backward data, backward weights, update, or reorder of a format",
    "time": "median over the profiled steps",
    "spread": "half of the middle half of the times, over their median",
    "share": "of the sum of all lines",
    "GFLOP/s": "nominal work over time, in 1e9 operations a second: two for a multiply-accumulate",
    "of peak": "that over the measured f32 peak; empty where the layer has no products, or nothing is proven",
    "GB/s": "bytes that must at least be moved, over time; of layers without products",
    "of limit": "the shortest time by the measured peak or by the measured bandwidth of memory, whichever is "
    "longer for its work and its bytes, over the time; above 100 % of memory, a cache had the data",
}
