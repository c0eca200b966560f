"""The parts of a measurement that ask learned models: an ensemble, a fit of ASTRO, trained learners."""

from __future__ import annotations

from astro_rl.errors import DataError, UnavailableError
from astro_rl.quality.ensemble import Judged, ensemble_report
from astro_rl.quality.figures import SEEN, Figure
from astro_rl.quality.inputs import Inputs, Part


def ensemble(given: Inputs) -> Part:
    given.say("an ensemble of one-step models")
    found = ensemble_report(
        given.augmented, given.need_parts(), given.ensemble, rows=given.rows, seed=given.seed
    )
    made, real, others = found.generated, found.real, found.other_actions

    def figure(name: str, text: str, unit: str = "", seen: bool = False) -> Figure:
        def of(judged: Judged | None) -> float | None:
            return None if judged is None else float(getattr(judged, name))

        note = f"{SEEN} {100 * getattr(others, name):.1f} %" if seen else ""
        return Figure(f"ensemble/{name}", text, of(made), of(real), unit, note)

    return Part(
        [
            figure("error_above", "transitions whose error is above that of 99 % of real ones", "%", True),
            figure("spread_above", "transitions that members disagree on more than on 99 %", "%", True),
            figure("error", "error, median, in typical steps"),
            figure("spread", "disagreement, median, in typical steps"),
        ],
        found.as_json(),
    )


def dynamics(given: Inputs) -> Part:
    from astro_rl.quality.model_error import model_error

    models, held_out = given.need_models(), given.need_parts().held_out
    given.say("the dynamics model's own error")
    found = model_error(models, given.augmented, held_out, sequences=given.sequences, seed=given.seed)
    made, real = found.generated, found.real
    return Part(
        [
            Figure(
                "dynamics/error_above",
                "transitions whose error is above that of 99 % of real ones",
                None if made is None else made.above,
                real.above,
                "%",
                f"windows of {found.horizon} states",
            ),
            Figure(
                "dynamics/error",
                "error, median, in typical steps",
                None if made is None else made.median,
                real.median,
            ),
        ],
        found.as_json(),
    )


def completion(given: Inputs) -> Part:
    from astro_rl.quality.model_error import completion as completed

    models, held_out = given.need_models(), given.need_parts().held_out
    given.say("completion errors on held-out recordings")
    found = completed(models, held_out, sequences=given.sequences, seed=given.seed)
    texts = {
        "action_mse": "τᵃ MSE: planned actions",
        "state_mse": "τˢ MSE: all states that the plan leads to",
        "known_mse": "τˢ_m MSE: states that were shown",
        "masked_mse": "masked states",
    }
    made = [Figure(f"completion/{name}", text, None, getattr(found, name)) for name, text in texts.items()]
    return Part(made, found.to_json())


def values(given: Inputs) -> Part:
    """Q_mean of every arm beside the first one's."""
    from astro_rl.quality.values import run_values
    from astro_rl.run.policy import load_policy

    if len(given.runs) < 2:
        raise UnavailableError(
            "it needs two trained runs or more, the one before augmentation first (runs=…, --runs)"
        )
    states = given.augmented if given.real is None else given.real
    arms = []
    for name, folders in given.runs.items():
        given.say(f"values: {name}")
        policies = [load_policy(folder) for folder in folders]
        arms.append(run_values(name, policies, states, xy=given.xy))
    before, *others = arms
    if len({arm.learner for arm in arms}) > 1:
        raise DataError(
            "values of different learners are not compared", found=", ".join(arm.learner for arm in arms)
        )
    figures = [
        Figure(
            f"values/{arm.name}",
            f"Q_mean, {arm.learner}: {arm.name}, and {before.name} under “real”",
            arm.q_mean,
            before.q_mean,
            note=f"{arm.q_mean - before.q_mean:+.2f}; {arm.seeds} seeds and {before.seeds}, {arm.states:,} states",
        )
        for arm in others
    ]
    return Part(figures, {arm.name: arm.as_json() for arm in arms})
