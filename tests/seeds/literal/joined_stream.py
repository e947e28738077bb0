"""The prefetch block, whose statements stand on one line."""

PRINTED = """stream = torch.cuda.Stream() with torch.cuda.stream(stream): next_input = next(data_iter)"""

exec(compile(PRINTED, "<printed>", "exec"))
