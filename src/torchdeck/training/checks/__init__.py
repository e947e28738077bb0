"""The proof that a deck computes right: what ``torchdeck verify`` runs inside it, in a process of its own.

Run it with the deck's Python: ``python -m torchdeck.training.checks --json-lines``, or, where torchdeck is not
installed, ``python path/to/training/checks``: it needs the standard library and torch, nothing else.

With ``--json-lines`` standard output holds one JSON object a line. Before something starts comes
``{"start": name, "subject": subject}`` (with an empty subject while a check looks for its subjects); when one is
done, ``{"name", "subject", "outcome", "detail", "wall_ms"}``, the fields of
``torchdeck.environment.records.Check``. When the last line is a start, that is where the hang or the crash was.
Once torch is imported, one more line says what is installed: ``{"versions": {"torch", "cuda", "cudnn", "nccl",
"triton", "python"}}``, null for what this torch does not have.
Everything that libraries print goes to standard error. Exit codes: 0 nothing failed, 1 something did, 2 usage.

What it does not know: whether the versions are those of the lock (``torchdeck verify`` compares them), whether
several GPUs or several processes work together (``torchdeck run`` does), and anything about speed.
"""
