"""What the page says besides its maps: facts, truth, scores, rejections, lineage, times, limits."""

from __future__ import annotations

from html import escape

from astro_rl.report.findings import limits, mean_interval, shown, signed
from astro_rl.report.markup import Bar, Section, amount, bars, counted, duration, paragraph, table
from astro_rl.report.score_chart import legend, score_chart
from astro_rl.report.story import Account, Facts, RunStory, Scores


def facts_table(story: RunStory) -> str:
    """The recorded dataset and, beside it, the augmented one."""
    columns = [story.original] + ([story.augmented] if story.augmented is not None else [])
    rows = [
        ("Trajectories", *(f"{facts.trajectories:,}" for facts in columns)),
        ("Transitions", *(f"{facts.transitions:,}" for facts in columns)),
        ("Length, shortest", *(f"{facts.shortest:,}" for facts in columns)),
        ("Length, median", *(amount(facts.median) for facts in columns)),
        ("Length, longest", *(f"{facts.longest:,}" for facts in columns)),
        ("Generated states", *(_percent(facts.generated_share) for facts in columns)),
        ("Recordings in one trajectory, median", *(_plain(facts.sources) for facts in columns)),
        ("Numbers in an observation", *(f"{facts.observation_dim}" for facts in columns)),
        ("Numbers in an action", *(f"{facts.action_dim}" for facts in columns)),
    ]
    return table(["Lengths in transitions", *(facts.name for facts in columns)], rows)


def tiles(story: RunStory) -> str:
    """The few figures that a reader looks for first."""
    found = [("recorded transitions", f"{story.original.transitions:,}")]
    if story.augmented is not None:
        found += [
            ("augmented transitions", f"{story.augmented.transitions:,}"),
            ("median length, recorded → augmented", f"{_lengths(story.original, story.augmented)}"),
        ]
        if story.augmented.generated_share is not None:
            found.append(("of augmented states generated", _percent(story.augmented.generated_share)))
    if story.scores:
        seeds = {len(arm) for scores in story.scores for arm in scores.arms.values()}
        found.append(
            ("training seeds an arm", f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}")
        )
    return (
        '<dl class="tiles">'
        + "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in found)
        + "</dl>"
    )


def truth_section(story: RunStory) -> Section | None:
    if not story.truth:
        return None
    rows = [
        (
            each.what,
            _share(each.median),
            _share(each.high),
            _share(each.floor_median),
            _share(each.floor_high),
        )
        for each in story.truth
    ]
    text = paragraph(
        "The simulator is set to a generated state and given the generated action. Its next state is compared with the "
        "generated one. Errors are shares of the length of one step; the floor is recorded data replayed the same way."
    )
    head = ["One-step error", "median", "95th percentile", "floor, median", "floor, 95th percentile"]
    return Section("truth", "Generated transitions against the simulator", text + table(head, rows), "Truth")


def scores_section(story: RunStory) -> Section | None:
    if not story.scores:
        return None
    parts = [paragraph(legend(story.scores), "soft small")]
    for scores in story.scores:
        title = f"{scores.learner.upper()}, {counted(scores.updates, 'update')}"
        parts.append(f'<h3>{escape(title)}</h3><figure data-figure="scores">{score_chart(scores)}</figure>')
        parts.append(_every_seed(scores))
    return Section("scores", "Scores, without and with augmented data", "".join(parts), "Scores")


def _every_seed(scores: Scores) -> str:
    """The chart's figures as text, for those who do not see it or want to copy them."""
    rows = []
    for arm, figures in scores.arms.items():
        estimate = mean_interval(figures)
        interval = f"{signed(estimate.low).lstrip('+')} to {signed(estimate.high).lstrip('+')}"
        each = ", ".join(shown(float(figure), "") for figure in figures)
        rows.append((arm, shown(estimate.value, scores.unit), interval, each))
    head = ["Data", "mean", "95 % interval", f"each seed ({counted(scores.episodes, 'episode')})"]
    return f"<details><summary>Every seed in figures</summary>{table(head, rows)}</details>"


def rejections_section(story: RunStory) -> Section | None:
    if not story.accounts:
        return None
    text = paragraph("What was proposed, what was kept, and why the rest was not.")
    return Section(
        "rejections",
        "Rejections by reason",
        text + "".join(_account(each) for each in story.accounts),
        "Rejections",
    )


def _account(account: Account) -> str:
    whole = max(account.proposed, 1)

    def row(text: str, count: int, classes: str) -> Bar:
        return Bar(text, count / whole, f"{count:,}", f"{100 * count / whole:.1f} %", classes)

    rows = [row("kept", account.kept, "kept")]
    rows += [
        row(reason, count, "rejected")
        for reason, count in sorted(account.rejected.items(), key=lambda r: -r[1])
    ]
    title = f"{account.title}: {account.proposed:,} proposed"
    note = paragraph(account.note, "soft small") if account.note else ""
    return f'<h3>{escape(title)}</h3><figure data-figure="rejections">{bars(rows)}</figure>{note}'


def lineage_section(story: RunStory) -> Section | None:
    if not story.lineage:
        return None
    text = paragraph(
        "The augmented data carries for every state which recording it comes from, or that it was generated. "
        "What was made from what:"
    )
    return Section(
        "lineage", "Lineage", text + table(["", ""], story.lineage.items(), classes="left"), "Lineage"
    )


def timings_section(story: RunStory) -> Section | None:
    if not story.stages:
        return None
    total = sum(stage.seconds for stage in story.stages)
    longest = max(stage.seconds for stage in story.stages) or 1.0
    text = paragraph(f"{duration(total)} in all" + (f", on {story.machine}." if story.machine else "."))
    rows = [
        Bar(stage.name, stage.seconds / longest, duration(stage.seconds), "", "stage")
        for stage in story.stages
    ]
    return Section(
        "times", "Where the time went", text + f'<figure data-figure="times">{bars(rows)}</figure>', "Times"
    )


def limits_section(story: RunStory) -> Section | None:
    found = limits(story)
    if not found:
        return None
    items = "".join(f"<li>{escape(text)}</li>" for text in found)
    return Section("limits", "What this page does not show", f'<ul class="limits">{items}</ul>', "Limits")


def repeat_section(story: RunStory) -> Section | None:
    """How to make the page again, and the files beside it."""
    parts = []
    if story.commands:
        parts.append(f'<pre tabindex="0">{escape(chr(10).join(story.commands))}</pre>')
    if story.settings:
        parts.append(table(["", ""], story.settings.items(), classes="left"))
    if story.links:
        links = "".join(
            f'<li><a href="{escape(link.path, quote=True)}">{escape(link.text)}</a></li>'
            for link in story.links
        )
        parts.append(f"<h3>Files</h3><ul>{links}</ul>")
    return Section("repeat", "Make it again", "".join(parts), "Repeat") if parts else None


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}\u00a0%"


def _share(share: float | None) -> str:
    return "–" if share is None else f"{amount(100 * share)}\u00a0%"


def _plain(value: float | None) -> str:
    return "1" if value is None else amount(value)


def _lengths(original: Facts, augmented: Facts) -> str:
    return f"{original.median:,.0f} → {augmented.median:,.0f}"
