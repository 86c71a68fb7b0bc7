"""Lay links under build/mirror/ansor/** so that type checkers see the installed layout.

Type checkers do not follow the package-dir mapping of an editable install: `ansor.rules` lives in `rules/`.
"""

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"ansor": "ansor", "rules": "ansor/rules", "cost_model": "ansor/cost_model",
           "measure": "ansor/measure", "targets": "ansor/targets"}


def main() -> None:
    mirror = ROOT / "build" / "mirror"
    shutil.rmtree(mirror, ignore_errors=True)
    for folder, package in FOLDERS.items():
        for source in (ROOT / folder).rglob("*.py*"):
            if source.suffix not in {".py", ".pyi"} and source.name != "py.typed":
                continue
            link = mirror / package / source.relative_to(ROOT / folder)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(source)
    (mirror / "ansor" / "py.typed").touch()


if __name__ == "__main__":
    main()
