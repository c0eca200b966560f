"""`astro-rl doctor`, as a command; what it looks at is in `doctor`."""

from __future__ import annotations

from dataclasses import dataclass

from astro_rl.cli.output import print_json


@dataclass(frozen=True)
class Doctor:
    """Say what is installed, what works here, what is missing, and the line that mends it."""

    json: bool = False
    """As JSON."""

    def run(self) -> int:
        from astro_rl.cli.doctor import collect_report, render

        report = collect_report()
        if self.json:
            print_json(report)
        else:
            print(render(report))
        return 1 if report["problems"] else 0
