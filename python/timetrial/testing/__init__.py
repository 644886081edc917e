"""The pytest plug-in: a training step in a test, judged by a race (fixture and marker `bench`).

    def test_my_step_is_not_slower(bench):
        mine = bench.step("mypackage.training:make_step", threads=1)
        bench.assert_not_slower(mine, than=mine.replace(python=".venv-before/bin/python"), max_slowdown=0.03)

By default everything runs once, as a test, and no time is judged; `pytest --bench=full` judges. `Bench` says
what the fixture can do. Importing this package costs a pytest session nothing: no NumPy, nothing compiled.
"""

from timetrial.testing.bench import Bench

__all__ = ["Bench"]
