"""Frozen types of what can be true about a machine. No input or output here; ``Missing(reason)`` is a value."""

from torchdeck.machine.facts.aggregate import SCHEMA, Facts, decode_facts, encode_facts
from torchdeck.machine.facts.missing import Fact, Missing, known
from torchdeck.machine.facts.nvidia import Driver, Gpu, Nvidia
from torchdeck.machine.facts.python import PythonFacts, TorchBuild
from torchdeck.machine.facts.storage import Place, Storage
from torchdeck.machine.facts.system import System
from torchdeck.machine.facts.toolchain import Compiler, Toolchain

__all__ = [
    "SCHEMA",
    "Compiler",
    "Driver",
    "Fact",
    "Facts",
    "Gpu",
    "Missing",
    "Nvidia",
    "Place",
    "PythonFacts",
    "Storage",
    "System",
    "Toolchain",
    "TorchBuild",
    "decode_facts",
    "encode_facts",
    "known",
]
