"""`astro-rl report`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from astro_rl.errors import ConfigError


@dataclass(frozen=True)
class Report:
    """Write the page of a run or of a bench: one HTML file that opens without a network, and figures for papers.

    A run's page tells whatever has finished: data, chains, trajectories, values, curves, scores, rejections, lineage.
    Measurements that lie beside it (measure.json, selection.json, pairs.json) are on it too. A bench has a page for
    each of its tables.
    """

    folder: Positional[Path]
    """The folder of an astro-rl run, or of astro-rl bench."""
    out: Path | None = None
    """The page. Default: FOLDER/report.html. Of a bench: the folder of its pages. Default: FOLDER/pages."""
    figures: Path | None = None
    """Also write every figure by itself, as PNG and PDF, into this folder."""
    data: Path | None = None
    """The recorded dataset, where the run was given it."""
    film: bool = False
    """Also draw an augmented trajectory in the simulator. Takes about a minute and a graphics library."""

    def run(self) -> int:
        from astro_rl.report.of_bench import is_bench, report_bench

        if is_bench(self.folder):
            if self.film or self.data is not None:
                raise ConfigError(
                    "A bench has tables only.",
                    field="--film, --data",
                    fix="leave them out, or name the folder of a run",
                )
            for path in report_bench(self.folder, out=self.out, figures=self.figures):
                print(f"page: {path}" if path.suffix == ".html" else f"figure: {path}")
            return 0
        self._of_run()
        return 0

    def _of_run(self) -> None:
        from astro_rl.data import load
        from astro_rl.report.evidence import NoFilm
        from astro_rl.report.of_run import PAGE, story_of_run
        from astro_rl.report.page import write_page
        from astro_rl.report.static import save_figures

        page = self.folder / PAGE if self.out is None else self.out
        dataset = None if self.data is None else load(self.data)
        story = story_of_run(self.folder, dataset=dataset, film=self.film, page_folder=page.parent)
        print(f"page: {write_page(story, page)}")
        if isinstance(story.film, NoFilm):
            print(f"no film: {story.film.reason}")
        for path in save_figures(story, self.figures) if self.figures is not None else ():
            print(f"figure: {path}")
