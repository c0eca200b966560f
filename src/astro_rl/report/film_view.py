"""A film strip of one trajectory, which a script turns into an animation."""

from __future__ import annotations

from html import escape

import numpy as np

from astro_rl.report.evidence import Film, NoFilm
from astro_rl.report.markup import Section, paragraph
from astro_rl.report.raster import data_uri
from astro_rl.report.story import RunStory


def film_section(story: RunStory) -> Section | None:
    film = story.film
    if film is None:
        return None
    title = "One trajectory as a film"
    if isinstance(film, NoFilm):
        return Section("film", title, paragraph(f"There is no film: {film.reason}"), "Film")
    text = paragraph(
        "The simulator put into states of one augmented trajectory and drawn. Nothing is simulated between them: what "
        "the body does here is what the data says."
    )
    key = (
        '<ul class="key"><li><span class="kind is-real"></span>recorded state</li>'
        '<li><span class="kind"></span>generated state</li></ul>'
    )
    return Section("film", title, text + paragraph(film.about, "soft") + key + _strip(film), "Film")


def frame_text(film: Film, number: int) -> str:
    return f"State {int(film.states[number]) + 1}, {kind(film, number)}"


def kind(film: Film, number: int) -> str:
    return "generated" if film.generated[number] else "recorded"


def _strip(film: Film) -> str:
    frames = "".join(
        f'<button type="button" class="frame{"" if film.generated[number] else " is-real"}" '
        f'aria-pressed="{"true" if number == 0 else "false"}"><img src="{frame_uri(pixels)}" '
        f'alt="{escape(frame_text(film, number))}" width="{pixels.shape[1]}" height="{pixels.shape[0]}">'
        f"<span>{int(film.states[number]) + 1} {kind(film, number)}</span></button>"
        for number, pixels in enumerate(film.frames)
    )
    last = len(film.frames) - 1
    return (
        f'<figure data-figure="film" data-film data-seconds="{film.seconds:g}"><div class="screen" hidden>'
        f'<img alt="" class="shown"><div class="controls"><button type="button" data-play aria-pressed="false">Play'
        f'</button><input type="range" min="0" max="{last}" value="0" aria-label="Frame of the film"></div>'
        f'<p class="readout"></p></div><div class="strip-of-frames">{frames}</div></figure>'
    )


def frame_uri(pixels: np.ndarray) -> str:
    """As PNG; the lowest two bits of each colour, which nobody sees, would take half of the room."""
    coarse = (pixels & 0xFC) | (pixels >> 6)
    return data_uri(np.dstack([coarse, np.full(coarse.shape[:2], 255, np.uint8)]))
