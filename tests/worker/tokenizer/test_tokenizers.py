#!/usr/bin/env python3
"""test_tokenizers.py - texts are encoded as the package tokenizers does it, id by id, and come back byte by
byte.

    test_tokenizers.py TREE TOKENIZE

What was recorded with it is compared by test_recorded.c, on any machine."""
import json
import pathlib
import subprocess
import sys
import tempfile

tree, tokenize = sys.argv[1:3]
sys.path.insert(0, tree)
from tests.support import tap  # noqa: E402

try:
    from tests.worker.tokenizer import shapes
except ImportError as error:
    tap.skip("tokenizers", f"{error}; 'pip install tokenizers' brings it")

kept = tempfile.TemporaryDirectory()
folder = pathlib.Path(kept.name)
made = {shape: shapes.make(shape, 1500, "".join(shapes.plain_texts())) for shape in shapes.SHAPES}
for name, tokenizer in made.items():
    tokenizer.save(str(folder / f"{name}.json"))


def encode(path, text, part=1 << 16):
    """The ids, and their bytes."""
    done = subprocess.run(["sh", "-c", f'exec "$0" "$@" 3>{folder}/bytes', tokenize, path, str(part)], input=text,
                          stdout=subprocess.PIPE, check=True)
    return list(map(int, done.stdout.split())), (folder / "bytes").read_bytes()


def same(shape, text, part=1 << 16):
    right = made[shape].encode(text, add_special_tokens=False).ids
    ids, back = encode(folder / f"{shape}.json", text.encode(), part)
    if ids != right:
        at = next((i for i, pair in enumerate(zip(ids, right)) if pair[0] != pair[1]), min(len(ids), len(right)))
        raise AssertionError(f"{text[:60]!a}: token {at} of {len(right)} is {ids[at:at + 3]}, not {right[at:at + 3]}")
    assert back.decode() == made[shape].decode(right, skip_special_tokens=False), text
    assert shape == "qwen" or back == text.encode(), text


def texts(shape):
    for text in shapes.plain_texts():
        for part in (1, 7, 1 << 16):
            same(shape, text, part)


def characters(shape):
    """Each by itself, behind and before others. Combining marks that are newer than the package's Unicode are
    left out: it does not put them in order."""
    newer = {*range(0x898, 0x8a0), *range(0x8ca, 0x8d3), *range(0x1abf, 0x1ad0), *range(0x1df6, 0x1dfc)}
    codes = [code for code in [*range(0x3400), *range(0xa000, 0xb000), *range(0xf900, 0x10000), *range(0x1f000, 0x1fb00)]
             if code not in newer and not 0xd800 <= code < 0xe000]
    same(shape, "".join(f" {chr(code)}{chr(code)}x1{chr(code)} \n{chr(code)}  b" for code in codes))


def long_texts(shape):
    """With pieces that go far beyond what is read at a time."""
    same(shape, " " * 300000 + "a" * 300000 + "=" * 300000 + "\n" * 300000 + "漢" * 100000)
    same(shape, shapes.odd_text(99, 60000), 4096)


def variants():
    """As others write the same: merges as texts, no type, spaces before words."""
    spec = json.loads((folder / "gpt2.json").read_text())
    merges = spec["model"]["merges"]
    assert isinstance(merges[0], list), merges[0]
    spec["model"]["merges"] = ["#version: 0.2", *(" ".join(merge) for merge in merges)]
    del spec["model"]["type"]
    spec["pre_tokenizer"]["add_prefix_space"] = True
    spec["added_tokens"][0]["normalized"] = True
    (folder / "variant.json").write_text(json.dumps(spec))
    made["variant"] = shapes.Tokenizer.from_file(str(folder / "variant.json"))
    for text in shapes.plain_texts():
        right = made["variant"].encode(text).ids
        assert encode(folder / "variant.json", text.encode())[0] == right, text


def another_pattern():
    """That of GPT-4o, of which Mistral's is a part; with all that a pattern may have."""
    pattern = "|".join([r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ll)?",
                        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ll)?",
                        r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]++[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+?"])
    spec = json.loads((folder / "llama3.json").read_text())
    spec["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = pattern
    (folder / "pattern.json").write_text(json.dumps(spec))
    made["pattern"] = shapes.Tokenizer.from_file(str(folder / "pattern.json"))
    for text in shapes.plain_texts():
        same("pattern", text, 13)
    characters("pattern")


cases = [(f"{shape}: {case.__name__}", lambda shape=shape, case=case: case(shape))
         for shape in shapes.SHAPES for case in (texts, characters, long_texts)]
sys.exit(tap.run([*cases, variants, another_pattern]))
