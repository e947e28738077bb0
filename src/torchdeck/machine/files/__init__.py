"""Files that describe an environment, judged by rule and line: text in, findings out.

Dockerfiles, compose files, devcontainer.json, requirements, pyproject.toml, conda's environment.yml. It knows what
stands in one file; it does not know base images, other files, or the machine that will run it.
"""

from torchdeck.machine.files.judge import FILE_LIMIT_BYTES, judge_file
from torchdeck.machine.files.kinds import KNOWN, Kind, kind_by_name, kind_of

__all__ = ["FILE_LIMIT_BYTES", "KNOWN", "Kind", "judge_file", "kind_by_name", "kind_of"]
