"""An experiment, ready to run: from a TOML file, from words, or from Python."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timetrial.cases import overrides as override
from timetrial.cases import sources
from timetrial.cases.case import Case
from timetrial.cases.cases import PlannedCase, expand
from timetrial.cases.grammar import Overrides, keyword_overrides, parse_words, to_word
from timetrial.cases.preferred import with_ready_dataset
from timetrial.cases.reference import check_reference
from timetrial.cases.spec import Spec, parse_spec
from timetrial.cautions import Caution
from timetrial.contenders.functions import with_words
from timetrial.errors import InputError
from timetrial.experiment.effort import Sizes, sizes
from timetrial.experiment.installed import spell_out
from timetrial.in_process.settings import held
from timetrial.toml import read_toml

if TYPE_CHECKING:
    from timetrial.networks.definition import NetworkDefinition
    from timetrial.results.profile import Profile
    from timetrial.results.results import Results


def _load_network(name: str) -> NetworkDefinition:
    from timetrial.workloads import load_network  # late: it needs the compiled core

    return load_network(name)


def _is_ready(dataset: str) -> bool:
    from timetrial.datasets import is_ready

    return is_ready(dataset)


@dataclass(frozen=True)
class Experiment:
    """Which contenders, on which workload, with which settings, how hard.

    Experiment.load("first-look", threads=[1, 2]) takes a shipped experiment or a file and changes it;
    Experiment.load(network="mlp", backend=["eigen", "null"]) is complete without a file;
    Experiment.from_dict({...}) takes what a TOML file would hold.
    """

    spec: Spec  # what was asked, validated
    cases: tuple[PlannedCase, ...]  # its cases, in the order of the table
    again: str | None  # the words that say the same again behind a verb; None: made from Python
    remarks: tuple[str, ...] = ()  # what was chosen for the user, in words

    @classmethod
    def load(cls, source: str | None = None, /, **keywords: Any) -> Experiment:
        """An experiment by name or path, with keys replaced as on the command line (lists span)."""
        inherited = {} if source else {k: v for k, v in held().items() if k not in keywords}
        overrides = keyword_overrides(with_words({**keywords, **inherited}))
        return load(source, overrides, where="arguments").holding(inherited)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Experiment:
        """The same document that a TOML file would hold."""
        where = f"experiment '{document.get('name', 'without a name')}'"
        return build(spell_out(parse_spec(with_words(document), where)), again=None)

    def holding(self, inherited: Mapping[str, Any]) -> Experiment:
        """The same, which says that these settings are those of the caller's `tt.settings`."""
        if not inherited:
            return self
        words = " ".join(f"{key}={value}" for key, value in inherited.items())
        return replace(self, remarks=(*self.remarks, Caution.HELD.words(settings=words)))

    @property
    def sizes(self) -> Sizes:
        """How many launches, how long."""
        measure = self.spec.measure
        return sizes(measure.effort, launches=measure.launches, learning_seeds=measure.learning_seeds)

    def again_with(self, verb: str) -> str:
        """The command that does the same again."""
        return f"(from Python) {self.spec.name}" if self.again is None else f"timetrial {verb} {self.again}"

    def run(
        self, *, results: str | Path = "results", prove_again: bool = False, quiet: bool = False
    ) -> Results:
        """Measures it. Ctrl-C (or a cancelled cell) ends every contender and keeps the records.
        `prove_again`: no proof of an earlier run counts."""
        from timetrial.experiment.runner import run_experiment

        return run_experiment(self, Path(results), prove_again=prove_again, quiet=quiet)

    def profile(
        self, *, results: str | Path = "results", prove_again: bool = False, quiet: bool = False
    ) -> Profile:
        """Where a step's time goes in each case. Ctrl-C ends every contender and keeps the records.
        `prove_again`: no proof of an earlier run counts."""
        from timetrial.experiment.runner import profile_experiment

        return profile_experiment(self, Path(results), prove_again=prove_again, quiet=quiet)

    def __repr__(self) -> str:
        backends = list(dict.fromkeys(planned.case.backend for planned in self.cases))
        return f"Experiment('{self.spec.name}': {len(self.cases)} cases of {', '.join(backends)})"


def load(
    source: str | None,
    overrides: Overrides,
    *,
    where: str = "command line",
    load_network: Callable[[str], NetworkDefinition] = _load_network,
) -> Experiment:
    """A validated experiment. `source` None: the overrides alone are the experiment."""
    spec = None
    if source is not None:
        path = sources.find(source)
        document = {"name": path.stem, **read_toml(path, "The experiment")}
        spec = spell_out(parse_spec(document, str(path)))
    elif not overrides:
        raise InputError(
            "Nothing to run. Name an experiment (`timetrial list` shows those that are shipped), "
            "or say what to run: timetrial run network=mlp backend=eigen."
        )
    if overrides or spec is None:
        spec = spell_out(parse_spec(override.apply(spec, overrides, where), where))
    words = [to_word(key, values) for key, values in overrides.items() if key != "seed"]
    again = shlex.join([*([source] if source else []), *words, f"seed={spec.seed}"])
    return build(spec, again=again, load_network=load_network)


def load_words(
    words: list[str], *, load_network: Callable[[str], NetworkDefinition] = _load_network
) -> Experiment:
    """The experiment of the words after `timetrial run`."""
    source, overrides = parse_words(words)
    return load(source, overrides, load_network=load_network)


def build(
    spec: Spec,
    *,
    again: str | None,
    load_network: Callable[[str], NetworkDefinition] = _load_network,
    cpus: int | None = None,
) -> Experiment:
    """Expands a validated spec into cases."""
    spec, missing = with_ready_dataset(spec, _is_ready)
    cases = tuple(expand(spec, load_network, cpus=cpus))
    spec = _without_default_mode(spec, [planned.case for planned in cases])
    check_reference(spec.measure.reference, [planned.case for planned in cases])
    return Experiment(spec=spec, cases=cases, again=again, remarks=_remarks(spec, missing))


def _remarks(spec: Spec, missing: str | None) -> tuple[str, ...]:
    if missing is None:
        return ()
    return (Caution.OTHER_DATASET.words(dataset=missing, other=str(spec.workload["dataset"])),)


def _without_default_mode(spec: Spec, cases: Sequence[Case]) -> Spec:
    """A reference may name the mode that its framework has anyway, though no case asks for it."""
    reference = dict(spec.measure.reference or {})
    mode, name = reference.pop("mode", None), reference.get("backend")
    if mode is None or any("mode" in case.settings for case in cases if case.backend == name):
        return spec
    from timetrial.environments import shipped_frameworks

    framework = shipped_frameworks().get(str(name).partition("@")[0])
    if framework is None:
        return spec
    version = str(name).partition("@")[2]
    modes = (framework.version(version) if version else framework.versions[0]).modes
    if modes[:1] != (mode,):
        return spec
    return spec.model_copy(update={"measure": spec.measure.model_copy(update={"reference": reference})})
