"""The learning launch: an evaluation on the test images before anything is learned, and after each epoch. And
the resource launch, which is a piece of one."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

from timetrial.launch.channel import Channel
from timetrial.launch.decisions import learning_stages, resource_stages
from timetrial.launch.found import Found
from timetrial.launch.plan import LaunchPlan
from timetrial.processes.answers import answers_of, beyond_chance
from timetrial.processes.events import Ask, EvaluateDone
from timetrial.processes.outcome import LaunchError
from timetrial.records.model import Evaluation
from timetrial.records.store import ANSWERS_FILE, write_answers


def run_learning(channel: Channel, found: Found) -> None:
    """`found` gets every evaluation, and what was written for the last one; whoever computes no network
    predicts nothing, and has none."""
    runner, watch, plan = channel.runner, channel.watch, channel.plan
    steps = 0
    if not channel.unprovable:
        with watch.evaluation(steps):
            found.untrained, answers = evaluate(channel.ask, plan, steps, epoch=0)
        found.warnings += beyond_chance(found.untrained.accuracy, answers[1])
    watch.begin_steady()
    for epoch, stage in enumerate(learning_stages(plan.measure, plan.prepared.steps_per_epoch), start=1):
        steps += runner.run_stage(stage).steps
        if stage.evaluate and not channel.unprovable:
            with watch.evaluation(steps):
                evaluation, answers = evaluate(channel.ask, plan, steps, epoch)
            found.files[ANSWERS_FILE] = write_answers(plan.folder, answers)
            found.evaluations.append(evaluation)
    watch.end_steady(runner.segments)


def run_resources(channel: Channel, found: Found) -> None:
    """Steps for some time, then an evaluation, for curves of what it uses: nothing of it is timed."""
    runner, watch, plan = channel.runner, channel.watch, channel.plan
    first, steady = resource_stages(plan.measure)
    runner.run_stage(first)
    watch.after_first_step()
    watch.begin_steady()
    runner.run_stage(steady)
    watch.end_steady(runner.segments)
    if not channel.unprovable and plan.predicts_classes:
        with watch.evaluation(runner.steps):
            evaluation, answers = evaluate(channel.ask, plan, runner.steps, epoch=0)
        found.files[ANSWERS_FILE] = write_answers(plan.folder, answers)
        found.evaluations.append(evaluation)


def evaluate(ask: Ask, plan: LaunchPlan, steps: int, epoch: int) -> tuple[Evaluation, npt.NDArray[np.int32]]:
    """On the test samples, after so many steps; and the class predicted and the true one of each."""
    began = time.monotonic_ns()
    predictions = plan.folder.resolve() / "tmp" / "predictions.npy"
    said = ask(f"evaluate {predictions}", EvaluateDone)
    if said.accuracy is None or said.loss is None:
        raise LaunchError(
            "nan", f"the evaluation after {steps} steps: accuracy {said.accuracy}, loss {said.loss}"
        )
    evaluation = Evaluation(
        steps=steps,
        epoch=epoch,
        accuracy=said.accuracy,
        loss=said.loss,
        samples=said.samples,
        duration_ns=time.monotonic_ns() - began,
        ended_ns=time.monotonic_ns(),
    )
    job = plan.prepared.job
    network, nodes = job["network"], {node["name"]: node for node in job["network"]["nodes"]}
    loss = nodes[network.get("output_loss", network["loss"])]
    truth = Path(job["streams"]["test"]["tensors"][loss["inputs"][1]])
    classes = nodes[network["output"]]["shape"][-1]
    return evaluation, answers_of(predictions, truth, evaluation, classes)
