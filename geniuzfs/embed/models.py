"""Which models there are, and which is chosen: `models/chosen.json` in the data directory.

Hides: that file. It names the chosen model and remembers where each model lies that was
ever chosen: an earlier one goes on answering until all is embedded anew. Promises: it is
written whole or not at all, and a model that is chosen had a sound card and the weights
that the card names.
"""

import contextlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from geniuzfs.embed import cards
from geniuzfs.embed.cards import Card
from geniuzfs.errors import ModelUnavailable, UsageError
from geniuzfs.model import ModelId

DIRECTORY = "models"
DEFAULT_NAME = "default"
_CHOSEN = "chosen.json"


class Listed(NamedTuple):
    """A model that can be chosen. `directory`: None for the one that is shipped; `missing`:
    why it can't be chosen, in one line, or None.
    """

    id: ModelId
    directory: Path | None
    chosen: bool
    missing: str | None


def chosen(home: Path) -> ModelId:
    """The id of the model that is chosen. Raises ModelUnavailable for a file that can't be read."""
    return ModelId(str(_read(home)["chosen"]))


def directory(home: Path, model: ModelId) -> Path | None:
    """Where that model lies; None: it is the one that is shipped. Raises ModelUnavailable."""
    if model == cards.DEFAULT.id:
        return None
    found = _read(home)["directories"].get(model)
    if found is None:
        raise ModelUnavailable(f"nobody knows where the model {model} is: choose it anew")
    return Path(found)


def checked(directory: Path) -> Card:
    """The card of a model whose files are all there and sound. Raises UsageError."""
    if not directory.is_dir():
        raise UsageError(f"{directory} is no directory")
    weights = cards.weights(directory)
    if not (directory / cards.TOKENIZER).is_file():
        raise UsageError(f"{directory / cards.TOKENIZER} is missing")
    card = cards.read(directory)
    try:
        found = cards.sha256(weights)
    except OSError as error:
        raise UsageError(f"{weights} can't be read: {error}") from error
    if found != card.sha256:
        raise UsageError(f"{weights} is not what its card says: the sha256 differs")
    return card


def use(home: Path, directory: Path | None) -> ModelId:
    """Choose the model in `directory`, or the one that is shipped. Raises UsageError."""
    try:
        known = _read(home)
    except ModelUnavailable:  # choosing is how a damaged file is mended
        known = _nothing()
    if directory is None:
        known["chosen"] = cards.DEFAULT.id
    else:
        place = Path(os.path.abspath(directory))
        known["chosen"] = checked(place).id
        known["directories"][known["chosen"]] = str(place)
    try:
        _write(home, known)
    except OSError as error:
        raise UsageError(f"the choice can't be saved: {error}") from error
    return ModelId(known["chosen"])


def listed(home: Path) -> list[Listed]:
    """The shipped model, then those that were chosen or downloaded. Raises ModelUnavailable."""
    known = _read(home)
    places = {Path(place) for place in known["directories"].values()}
    below = home / DIRECTORY
    if below.is_dir():
        places.update(path for path in below.iterdir() if (path / cards.FILE).is_file())
    found = [Listed(cards.DEFAULT.id, None, known["chosen"] == cards.DEFAULT.id, None)]
    return found + [_listed(place, known["chosen"]) for place in sorted(places)]


def _listed(place: Path, chosen: str) -> Listed:
    try:
        card = cards.read(place)
        cards.weights(place)
    except UsageError as error:
        return Listed(ModelId(place.name), place, False, str(error))
    return Listed(card.id, place, card.id == chosen, None)


def _nothing() -> dict[str, Any]:
    return {"chosen": cards.DEFAULT.id, "directories": {}}


def _read(home: Path) -> dict[str, Any]:
    path = home / DIRECTORY / _CHOSEN
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return _nothing()
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"{path} can't be read, choose a model anew: {error}") from error
    if (
        not isinstance(found, dict)
        or not isinstance(found.get("chosen"), str)
        or not isinstance(found.get("directories"), dict)
    ):
        raise ModelUnavailable(f"{path} makes no sense: choose a model anew")
    return found


def _write(home: Path, known: dict[str, Any]) -> None:
    target = home / DIRECTORY / _CHOSEN
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    import tempfile  # here, since a model is hardly ever chosen: 2 ms

    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=_CHOSEN)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(known, file, indent=2)
            file.flush()
            os.fsync(descriptor)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
