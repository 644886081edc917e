"""Networks of a user's own over sequences: what the built-in ones lack."""

import re

# Two recurrent layers over tokens, the last state and the mean of them all.
TEXTS = """
nodes = [
    { name = "embed", kind = "embedding", inputs = ["tokens"], attributes = { vocabulary = 5000, units = 6} },
    { name = "one", kind = "lstm", inputs = ["embed", "lengths"], attributes = { output = "all", MORE } },
    { name = "two", kind = "lstm", inputs = ["one", "lengths"], attributes = { MORE } },
    { name = "mean", kind = "mean_over_time", inputs = ["one", "lengths"] },
    { name = "both", kind = "concat", inputs = ["two", "mean"] },
    { name = "fc", kind = "dense", attributes = { units = "classes" } },
    { name = "loss", kind = "softmax_cross_entropy", inputs = ["fc", "labels"] },
]
dataset = "synthetic-sentences@20"
"""

# Series of numbers through a dense layer at each step.
SERIES = """
nodes = [
    { name = "each", kind = "dense", inputs = ["series"], attributes = { units = 6 } },
    { name = "curve", kind = "tanh" },
    { name = "lstm", kind = "lstm", inputs = ["curve", "lengths"], attributes = { units = 8 } },
    { name = "fc", kind = "dense", attributes = { units = "classes" } },
    { name = "loss", kind = "softmax_cross_entropy", inputs = ["fc", "labels"] },
]
dataset = "synthetic-series"
"""

# The same, every step counting.
FULL = SERIES.replace(', "lengths"', "")

# A table, and no layer that goes on from its own last state.
TABLE = """
nodes = [
    { name = "embed", kind = "embedding", inputs = ["tokens"], attributes = { vocabulary = 5000, units = 4} },
    { name = "mean", kind = "mean_over_time", inputs = ["embed", "lengths"] },
    { name = "fc", kind = "dense", attributes = { units = "classes" } },
    { name = "loss", kind = "softmax_cross_entropy", inputs = ["fc", "labels"] },
]
dataset = "synthetic-sentences@20"
"""

# The next word at each step.
LANGUAGE = """
nodes = [
    { name = "in", kind = "embedding", inputs = ["tokens"], attributes = { vocabulary = 10000, units = 4 } },
    { name = "one", kind = "lstm", attributes = { units = 8, output = "all" } },
    { name = "two", kind = "lstm", attributes = { units = 6, output = "all" } },
    { name = "fc", kind = "dense", attributes = { units = "classes" } },
    { name = "loss", kind = "sequence_cross_entropy", inputs = ["fc", "labels"] },
]
dataset = "synthetic-language@6"
"""

# The same with scores by the rows of the table.
TIED = LANGUAGE.replace("units = 4", "units = 6").replace(
    'kind = "dense", attributes = { ', 'kind = "tied_dense", attributes = { tied = "in", '
)

# The same, whose layers go on from batch to batch.
CARRIED = LANGUAGE.replace('"lstm"', '"stateful_lstm"')

# A sentence is read, and then said in another language.
TRANSLATION = """
nodes = [
    { name = "in", kind = "embedding", inputs = ["source"], attributes = { vocabulary = 5000, units = 5 } },
    { name = "encoder", kind = "gru", inputs = ["in", "source_lengths"], attributes = { units = 7 } },
    { name = "said", kind = "embedding", inputs = ["tokens"], attributes = { vocabulary = 5000, units = 4 } },
    { name = "decoder", kind = "continued_gru", inputs = ["said", "encoder"], attributes = { units = 7, output = "all" } },
    { name = "fc", kind = "dense", attributes = { units = "classes" } },
    { name = "loss", kind = "sequence_cross_entropy", inputs = ["fc", "labels"] },
]
dataset = "synthetic-pairs@6"
"""  # noqa: E501

# Maps of a convolution, read row by row.
ROWS = """
nodes = [
    { name = "conv", kind = "conv2d", inputs = ["images"], attributes = { channels = 3, kernel = 5, stride = 3 } },
    { name = "curve", kind = "tanh" },
    { name = "rows", kind = "map_to_sequence" },
    { name = "lstm", kind = "lstm", attributes = { units = 8 } },
    { name = "fc", kind = "dense", attributes = { units = "classes" } },
    { name = "loss", kind = "softmax_cross_entropy", inputs = ["fc", "labels"] },
]
dataset = "digits28"
"""  # noqa: E501


def gated(reset_after: bool = True) -> str:
    """Those of `texts` with GRUs."""
    more = f"units = 8, reset_after = {str(reset_after).lower()}"
    return TEXTS.replace('"lstm"', '"gru"').replace("MORE", more)


def plain(biases: int = 1) -> str:
    """The same with the simplest recurrence."""
    return texts(biases).replace('"lstm"', '"rnn"')


def directed(text: str, direction: str = "bidirectional") -> str:
    """Those of `texts`, `gated` or `plain`, or `FULL`, with recurrent layers in this direction."""
    return text.replace("units = 8", f'units = 8, direction = "{direction}"')


def beside_an_lstm() -> str:
    """Those of `texts` with a GRU, without biases, behind the other."""
    lstm, gru = ('name = "two", kind = "{}", inputs = ["one", "lengths"], attributes = {{ {} }}',) * 2
    lstm, gru = lstm.format("lstm", "MORE"), gru.format("gru", "units = 8, bias = false")
    return TEXTS.replace(lstm, gru).replace("MORE", "units = 8")


def over_series(text: str) -> str:
    """A layer of the cells of `gated` or `plain`, named `one`, over series: of four classes, not of two."""
    kind = "gru" if '"gru"' in text else "rnn"
    more = re.search('attributes = { output = "all", (.*?) }', text)
    assert more is not None
    own = f'name = "one", kind = "{kind}", inputs = ["curve", "lengths"], attributes = {{ {more[1]} }}'
    lstm = 'name = "lstm", kind = "lstm", inputs = ["curve", "lengths"], attributes = { units = 8 }'
    return SERIES.replace(lstm, own)


def texts(biases: int = 1) -> str:
    """With so many biases in each recurrent layer."""
    return TEXTS.replace("MORE", f"units = 8, biases = {biases}")
