"""The parser: what an instruction says after continuations, comments, heredocs and variables, and where it stands."""

from __future__ import annotations

from torchdeck.machine.files.dockerfile import pairs, parse_dockerfile
from torchdeck.machine.files.shell import commands


def test_continuations_comments_and_empty_lines_join_to_one_instruction_with_true_lines() -> None:
    file = parse_dockerfile("FROM a\nRUN one && \\\n# no\n\n  two && \\  \n  three\nRUN four\n")
    first, second = file.stages[0].instructions
    assert first.text.split() == ["one", "&&", "two", "&&", "three"]
    assert [first.line_of(word) for word in ("one", "two", "three")] == [2, 5, 6]
    assert (second.line, second.text) == (7, "four")


def test_the_escape_directive_changes_the_continuation() -> None:
    file = parse_dockerfile("# escape=`\nFROM a\nRUN one `\n two \\\nRUN three")
    assert [one.text.split() for one in file.stages[0].instructions] == [["one", "two", "\\"], ["three"]]


def test_a_directive_after_a_comment_is_a_comment() -> None:
    file = parse_dockerfile("# hello\n# escape=`\nFROM a\nRUN one \\\n two")
    assert [one.text.split() for one in file.stages[0].instructions] == [["one", "two"]]


def test_carriage_returns_are_no_part_of_a_line() -> None:
    file = parse_dockerfile("FROM a\r\nRUN one \\\r\n two\r\n")
    assert file.stages[0].base == "a"
    assert file.stages[0].instructions[0].text.split() == ["one", "two"]


def test_a_heredoc_is_no_instruction_and_its_script_keeps_its_lines() -> None:
    file = parse_dockerfile("FROM a\nRUN <<-'E' \n\tFROM b\n\tpip install x\n\tE\nCOPY <<A <<B /\n1\nA\n2\nB\nRUN last")
    run, copy, last = file.stages[0].instructions
    assert len(file.stages) == 1
    assert run.script_lines()(run.script.index("pip")) == 4
    assert copy.heredoc == "1\n2"
    assert (last.line, last.text) == (11, "last")


def test_a_heredoc_for_another_program_is_not_shell() -> None:
    file = parse_dockerfile(
        "FROM a\nRUN python - <<EOF\npip install torch\nEOF\nRUN <<EOF\n#!/usr/bin/env python\nx\nEOF\n"
    )
    assert [one.script for one in file.stages[0].instructions] == ["", ""]


def test_a_shift_and_a_here_string_are_no_heredoc() -> None:
    file = parse_dockerfile("FROM a\nRUN echo $((1<<2)) && cat <<<EOF\nRUN two")
    assert [one.text for one in file.stages[0].instructions][1] == "two"


def test_variables_take_defaults_of_the_head_only_where_a_stage_asks_for_them() -> None:
    file = parse_dockerfile("ARG V=3.12\nARG W\nFROM python:${V}-${W:-slim}\nRUN a $V\nARG V\nRUN b $V ${X} \\$V\n")
    stage = file.stages[0]
    assert stage.base == "python:3.12-slim"
    assert [one.text for one in stage.instructions] == ["a $V", "V", "b 3.12 ${X} \\$V"]


def test_env_wins_over_arg_and_is_inherited_by_stages() -> None:
    file = parse_dockerfile("FROM a AS one\nENV V=env\nARG V=arg\nFROM one\nRUN $V ${V:+set} ${N:-none}")
    assert file.stages[1].instructions[0].text == "env set none"
    assert file.stages[1].image == "a"


def test_stages_are_found_by_name_and_number_and_the_ones_nobody_uses_are_shipped() -> None:
    file = parse_dockerfile(
        "FROM a AS Base\nFROM base AS x\nFROM c AS y\nCOPY --from=0 / /\n"
        "FROM d AS z\nRUN --mount=type=bind,from=y,target=/y true\nFROM e\nCOPY --from=other/image:1 / /"
    )
    assert [stage.name for stage in file.shipped()] == ["x", "z", ""]


def test_pairs_of_env_in_both_forms() -> None:
    assert pairs("A=1 B=\"two words\" C='x y' D=a\\ b") == [("A", "1"), ("B", "two words"), ("C", "x y"), ("D", "a b")]
    assert pairs("NAME some value") == [("NAME", "some value")]
    assert pairs("") == []


def test_a_value_that_doubles_itself_again_and_again_stays_small() -> None:
    text = "FROM a\nARG A=xxxxxxxxxxxxxxxx\n" + "ARG A=$A$A$A$A\n" * 200 + "RUN " + "$A" * 100_000
    assert len(parse_dockerfile(text).stages[0].instructions[-1].text) < 10**6


def test_shell_words_keep_quotes_together_and_lose_prefixes() -> None:
    text = "FOO=1 sudo -E pip install 'a b' \"c d\" e\\ f; if true; then x=1 bash -lc 'pip install q && ls'; fi"
    assert [[word.text for word in words] for words in commands(text)] == [
        ["pip", "install", "a b", "c d", "e f"],
        ["true"],
        ["pip", "install", "q"],
        ["ls"],
        ["fi"],
    ]


def test_only_a_version_after_a_bare_sign_counts_as_cut_off() -> None:
    (words,) = commands("pip install a>=1 b>/dev/null c<2.7 'd>=1'")
    assert [word.text for word in words if word.redirected] == ["a", "c"]
