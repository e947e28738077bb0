"""All facts of a machine in one record, and its form as a file that another machine can judge."""

from __future__ import annotations

import json

import msgspec

from torchdeck.errors import UsageError
from torchdeck.machine.facts.caches import Caches
from torchdeck.machine.facts.engines import Engines
from torchdeck.machine.facts.host import Host
from torchdeck.machine.facts.missing import Fact, Missing
from torchdeck.machine.facts.network import Network
from torchdeck.machine.facts.nvidia import Nvidia
from torchdeck.machine.facts.python import PythonFacts
from torchdeck.machine.facts.storage import Storage
from torchdeck.machine.facts.surroundings import Surroundings
from torchdeck.machine.facts.system import System
from torchdeck.machine.facts.toolchain import Toolchain

SCHEMA = "torchdeck.facts/1"
# A machine of eight GPUs takes some 10 kB: anything far beyond that is not a fact file.
MAX_BYTES = 5_000_000


class Facts(Fact, frozen=True, kw_only=True):
    """What is true of a machine.

    Args:
        schema: Name and number of this format.
        torchdeck: The version that gathered it.
        gathered_at: When, as ISO time in UTC.
        variables: Environment variables from a list of allowed names.
    """

    schema: str = SCHEMA
    torchdeck: str
    gathered_at: str
    system: System | Missing
    nvidia: Nvidia | Missing
    python: PythonFacts | Missing
    toolchain: Toolchain | Missing
    storage: Storage | Missing
    host: Host | Missing | None = None
    network: Network | Missing | None = None
    surroundings: Surroundings | Missing | None = None
    engines: Engines | Missing | None = None
    caches: Caches | Missing | None = None
    variables: dict[str, str]


def encode_facts(facts: Facts) -> bytes:
    """Return facts as a readable JSON file."""
    return msgspec.json.format(msgspec.json.encode(facts), indent=2) + b"\n"


def decode_facts(data: bytes, origin: str) -> Facts:
    """Read a fact file.

    Args:
        data: Its content.
        origin: Its name, for the messages.

    Raises:
        UsageError: It is cut off, too large, of a later torchdeck, or no fact file at all.
    """
    mend = "torchdeck doctor --save host.json  (on the machine in question)"
    if len(data) > MAX_BYTES:
        raise UsageError(f"{origin} is too large for a fact file", found=f"{len(data)} bytes", needs=f"≤ {MAX_BYTES}")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{origin} is not a fact file", found=f"no JSON: {error}"[:200], mend=mend) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        shown = f"schema {schema!r}"[:100] if schema else "no schema"
        later = isinstance(schema, str) and schema.startswith("torchdeck.facts/")
        raise UsageError(
            f"{origin} was made by another version of torchdeck" if later else f"{origin} is not a fact file",
            found=shown,
            needs=SCHEMA,
            mend=mend,
        )
    try:
        return msgspec.convert(document, Facts)
    except (msgspec.ValidationError, RecursionError) as error:
        raise UsageError(f"{origin} is not a fact file", found=str(error)[:200], needs=SCHEMA, mend=mend) from None
