#!/usr/bin/env python3
"""test_token_files.py - training on files of tokens of every format, and `gimbal data show` of them.

    test_token_files.py TREE GIMBAL EXECUTOR"""
import contextlib
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

tree, gimbal_path = sys.argv[1:3]
sys.path.insert(0, tree)
from tests.support import tap  # noqa: E402

TEXTS = [b"Zwei mal drei macht vier, widdewiddewitt und drei macht neune.\n" * 30,
         b"Ich mach mir die Welt, widdewidde wie sie mir gefaellt.\n" * 40]
END = 256
TOKENS = [token for text in TEXTS for token in [*text, END]]


def gimbal(*arguments, code=0):
    done = subprocess.run([gimbal_path, *map(str, arguments)], capture_output=True, timeout=100)
    assert done.returncode == code, done
    assert code or not done.stderr, done
    return (done.stdout if code == 0 else done.stderr).decode()


def packed(tokens, letter):
    return struct.pack(f"<{len(tokens)}{letter}", *tokens)


def llm_c(path, letter):
    magic, version = {"H": (20240520, 1), "I": (20240801, 7)}[letter]
    path.write_bytes(struct.pack("<256i", magic, version, len(TOKENS), *[0] * 253) + packed(TOKENS, letter))


def megatron(prefix, letter):
    lengths = [len(text) + 1 for text in TEXTS]
    width, code = {"H": (2, 8), "i": (4, 4)}[letter]
    pointers = [width * sum(lengths[:i]) for i in range(len(lengths))]
    prefix.with_suffix(".bin").write_bytes(packed(TOKENS, letter))
    prefix.with_suffix(".idx").write_bytes(
        b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(lengths), len(lengths) + 1) + packed(lengths, "i") +
        packed(pointers, "q") + packed(range(len(lengths) + 1), "q"))


@contextlib.contextmanager
def files():
    """A folder with the same tokens in every format, and data of a job for each."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = {}
        for letter in "HI":
            llm_c(folder / f"llm_c_{letter}", letter)
            data[f"llm.c {letter}"] = f"tokens: '{folder}/llm_c_{letter}'"
        for letter in "Hi":
            megatron(folder / f"megatron_{letter}", letter)
        data["megatron H"] = f"tokens: '{folder}/megatron_H'"
        data["megatron i"] = f"tokens: '{folder}/megatron_i.idx'"
        for letter, word in (("H", "uint16"), ("I", "uint32")):
            (folder / f"{word}.bin").write_bytes(packed(TOKENS, letter))
            data[word] = f"tokens: '{folder}/{word}.bin', format: {word}"
        yield folder, data


def job(folder, data, vocab=257):
    path = folder / "job.yaml"
    path.write_text("apiVersion: gimbal/v1\nname: tokens\n"
                    f"model: {{family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16, vocab: {vocab}}}\n"
                    f"data: {{{data}}}\ntrain: {{steps: 60, global_batch: 4, lr: 0.01, seed: 3}}\n"
                    "devices: {max: 2}\n")
    return path


def every_format_trains_alike():
    with files() as (folder, data):
        losses = {}
        for name, section in data.items():
            lines = gimbal("train", "--local", 2, "-f", job(folder, section), "-q", "--checkpoint", "none",
                           "--output", "jsonl").splitlines()
            losses[name] = [step["loss"] for step in map(json.loads, lines) if step["kind"] == "Step"]
            assert len(losses[name]) == 60, lines
        first = losses["llm.c H"]
        assert all(one == first for one in losses.values()), losses
        assert first[0] > 5 and sum(first[-5:]) / 5 < 3, first


def a_job_is_told_what_is_wrong_before_it_trains():
    with files() as (folder, data):
        bare = folder / "uint16.bin"
        said = gimbal("train", "--local", 2, "-f", job(folder, f"tokens: '{bare}'"), "-q", "--checkpoint", "none", code=65)
        assert f"'{bare}' has no header that tells its format" in said and "format: uint16" in said, said
        said = gimbal("train", "--local", 2, "-f", job(folder, data["megatron H"], vocab=256), "-q", "--checkpoint", "none", code=65)
        assert f"token {len(TEXTS[0])} of '{folder}/megatron_H.bin' is 256, but model.vocab is 256" in said, said
        bare.write_bytes(packed([*TOKENS, 257], "H"))
        more = f"tokens: '{bare}', format: uint16, tokenizer: bytes"
        said = gimbal("train", "--local", 2, "-f", job(folder, more, vocab=300), "-q", code=65)
        assert f"token {len(TOKENS)} of '{bare}' is 257, but the size of data.tokenizer" in said, said
        bare.write_bytes(b"\x93NUMPY\1\0" + bytes(120) + packed(TOKENS, "H"))
        said = gimbal("train", "--local", 2, "-f", job(folder, data["uint16"]), "-q", code=65)
        assert f"'{bare}' is an array of numpy's (.npy)" in said and "tofile(OTHER)" in said, said
        (folder / "megatron_H.idx").unlink()
        said = gimbal("train", "--local", 2, "-f", job(folder, data["megatron H"]), "-q", "--checkpoint", "none", code=65)
        assert f"'{folder}/megatron_H.idx' is not there" in said, said


def show(*arguments):
    answer = json.loads(gimbal("data", "show", *arguments, "-o", "json"))
    assert answer["apiVersion"] == "gimbal/v1" and answer["kind"] == "TokenFileList", answer
    return answer["files"]


def what_files_hold_is_shown():
    with files() as (folder, _):
        one, other = show(folder / "llm_c_H", folder / "megatron_i")
        assert one == {"file": f"{folder}/llm_c_H", "format": "llm.c", "token_bytes": 2, "tokens": len(TOKENS),
                       "documents": None, "smallest": 10, "largest": 256, "file_bytes": 1024 + 2 * len(TOKENS),
                       "first": TOKENS[:32], "text": None}, one
        assert other == {**one, "file": f"{folder}/megatron_i.bin", "format": "Megatron-LM", "token_bytes": 4,
                         "documents": 2, "file_bytes": 4 * len(TOKENS)}, other
        bare, = show("--format", "uint32", "--tokenizer", "bytes", folder / "uint32.bin")
        assert bare == {**one, "file": f"{folder}/uint32.bin", "format": "uint32", "token_bytes": 4, "documents": 2,
                        "file_bytes": 4 * len(TOKENS), "text": TEXTS[0][:32].decode()}, bare
        lines = gimbal("data", "show", folder / "llm_c_H", folder / "megatron_H.idx").splitlines()
        assert lines[0].split() == ["FILE", "FORMAT", "BITS", "TOKENS", "DOCUMENTS", "SMALLEST", "LARGEST", "SIZE",
                                    "BEGINS"], lines
        assert lines[1].split()[1:7] == ["llm.c", "16", str(len(TOKENS)), "-", "10", "256"], lines
        assert lines[1].endswith(" ".join(map(str, TOKENS[:8])) + " ..."), lines
        assert lines[2].split()[:7] == [f"{folder}/megatron_H.bin", "Megatron-LM", "16", str(len(TOKENS)), "2", "10",
                                        "256"], lines
        line, = gimbal("data", "show", folder / "llm_c_I", "--tokenizer", "bytes", "--no-headers").splitlines()
        assert line.endswith('"Zwei mal drei macht vier, widdew"'), line


def what_packs_can_be_shown():
    """Several documents, the tokens of a tokenizer, and a character that is cut."""
    gpt2 = pathlib.Path(tree) / "tests/worker/tokenizer/recorded/gpt2.json"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "a").write_text("x" * 31 + "ü")
        (folder / "b").write_text("A second text\n\tof two lines.")
        gimbal("data", "pack", folder / "a", folder / "b", "-o", folder / "bytes.bin", "-q")
        gimbal("data", "pack", folder / "b", folder / "a", "-o", folder / "gpt2.bin", "-q", "-e", "--tokenizer", gpt2)
        one, = show("--tokenizer", "bytes", folder / "bytes.bin")
        assert one["text"] == "x" * 31 and one["documents"] == 1, one
        one, = show("--tokenizer", gpt2, folder / "gpt2.bin")
        assert one["text"].startswith("A second text\n\tof two lines.") and one["documents"] == 2, one
        line, = gimbal("data", "show", folder / "gpt2.bin", "--tokenizer", gpt2, "--no-headers").splitlines()
        assert r'"A second text\n\tof two lines.' in line, line


def nonsense_is_told_apart():
    with files() as (folder, _):
        (folder / "empty").touch()
        line, = gimbal("data", "show", folder / "empty", "--format", "uint16", "--no-headers").splitlines()
        assert line.split()[1:7] == ["uint16", "16", "0", "-", "-", "-"], line
        for code, words, arguments in [
                (64, "needs FILE...", []),
                (64, "--format", [folder / "uint16.bin", "--format", "uint8"]),
                (65, "has no header that tells its format", [folder / "uint16.bin"]),
                (65, "is a file of llm.c's format", [folder / "llm_c_H", "--format", "uint16"]),
                (65, "cannot open", [folder / "llm_c_H", folder / "nowhere"]),
                (65, "cannot open", [folder / "llm_c_H", "--tokenizer", folder / "nowhere.json"]),
                (65, "but the size of the tokenizer is 257", [folder / "uint16.bin", "--format", "uint32",
                                                              "--tokenizer", "bytes"])]:
            said = gimbal("data", "show", *arguments, code=code)
            assert words in said and len(said.splitlines()) == 1, said


sys.exit(tap.run([every_format_trains_alike, a_job_is_told_what_is_wrong_before_it_trains, what_files_hold_is_shown,
                  what_packs_can_be_shown, nonsense_is_told_apart]))
