"""Results and races in the formats of other tools.

| format             | file          | what is in it                                                 |
|--------------------|---------------|---------------------------------------------------------------|
| `csv`              | a folder      | cases, launches, steps, looks; of a race its pairs and rounds |
| `parquet`          | a folder      | the same, with types                                          |
| `perfetto`         | one JSON file | a trace: phases of launches, and curves of those looked at    |
| `google-benchmark` | one JSON file | step time of each case, in ns; failed cases as errors         |
| `bencher`          | one JSON file | Bencher Metric Format: time in ns, samples/s, memory in bytes |
| `github-action`    | one JSON file | github-action-benchmark, `customSmallerIsBetter`: time in ns  |
| `history`          | JSON lines    | a line for each number, appended (changes/entry.py)           |
| `mlflow`           | a folder      | a run for each case (mlflow_store.py)                         |
| `tensorboard`      | a folder      | an event file for each case (tensorboard.py)                  |

Only what is `ok` has numbers. The first two keep failed rows, with their outcome, and `dictionary.csv`
explains their columns; in CSV an empty field is null, so read it with the empty word as the only null (one
backend is named `null`). Bencher's format and that of the GitHub action have no place for a row without a
number, so it is left out there. A number of one launch has no interval in any of them.
"""

from __future__ import annotations

from timetrial.exports.formats import FOLDERS, FORMATS
from timetrial.exports.lines import left_out
from timetrial.exports.writing import export

__all__ = ["FOLDERS", "FORMATS", "export", "left_out"]
