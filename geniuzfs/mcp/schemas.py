"""What tools take and give: JSON Schemas, and values checked against them.

Hides: pydantic. Promises: an object that is taken has the parameters that its schema lists and no
other, of exactly the types that it says (`"10"` is no number); what is wrong is told in one line
that names the parameter and does not repeat the value. Refuses: `folder`, where a server is kept
to one.
"""

from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from geniuzfs.errors import UsageError

_MOST_TOLD = 3
"""Wrong parameters that an error names."""


class Arguments(BaseModel):
    """What a tool takes."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class InFolder(Arguments):
    """What a tool takes that works on a folder."""

    folder: str | None = Field(
        None, description="The folder's name. Leave it out for the one that the user has chosen."
    )


class Part(BaseModel):
    """A part of what a tool gives."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Result(Part):
    """What a tool gives: structured as it is, and as a text."""

    somebodys: ClassVar[bool] = True
    """Whether the text holds what somebody wrote."""

    def said(self) -> str:
        """As text for a model, without a fence."""
        raise NotImplementedError


Taken = TypeVar("Taken", bound=Arguments)


class _Untitled(GenerateJsonSchema):
    """Without titles: they repeat the names, and a model reads all of it at every start."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema(kind: type[BaseModel], *, one_folder: bool = False) -> dict[str, Any]:
    """The JSON Schema of what is taken or given; `one_folder`: without the choice of one."""
    made = kind.model_json_schema(schema_generator=_Untitled)
    for each in (made, *made.get("$defs", {}).values()):
        each.pop("title", None)
        each.pop("description", None)  # of the class, for who reads the code
    properties = made.get("properties", {})
    if one_folder:
        properties.pop("folder", None)
    if issubclass(kind, Arguments):
        needed = made.get("required", [])
        held = {name: _plain(each) for name, each in properties.items()}
        made["properties"] = dict(sorted(held.items(), key=lambda one: one[0] not in needed))
    return made


def _plain(taken: dict[str, Any]) -> dict[str, Any]:
    """A parameter that may be left out, without null for another type: clients that turn words
    into numbers by the schema know `type` alone. A null is as if it were left out, all the same.
    """
    kinds = [one for one in taken.get("anyOf", ()) if one != {"type": "null"}]
    if len(kinds) != 1:
        return taken
    return {**kinds[0], "description": taken["description"]}


def taken(kind: type[Taken], given: dict[str, Any] | None, *, one_folder: bool = False) -> Taken:
    """`given`, checked. Raises UsageError."""
    given = given or {}
    if one_folder and "folder" in given:
        raise UsageError("folder: this server is kept to one folder: leave it out")
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        known = [name for name in kind.model_fields if not (one_folder and name == "folder")]
        raise UsageError(_told(known, error)) from error


def _told(known: list[str], error: ValidationError) -> str:
    wrong = error.errors(include_url=False, include_input=False, include_context=False)
    told = "; ".join(_wrong(each["loc"], each["type"], each["msg"]) for each in wrong[:_MOST_TOLD])
    more = f"; and {len(wrong) - _MOST_TOLD} more" if len(wrong) > _MOST_TOLD else ""
    unknown = any(one["type"] == "extra_forbidden" for one in wrong)
    return told + more + f" (parameters: {', '.join(known) or 'none'})" * unknown


def _wrong(where: tuple[int | str, ...], kind: str, message: str) -> str:
    name = ".".join(str(part)[:60] for part in where)
    if kind == "extra_forbidden":
        return f"{name}: there is no such parameter"
    if kind == "missing":
        return f"{name}: is needed"
    return f"{name}: {message[:1].lower()}{message[1:]}"
