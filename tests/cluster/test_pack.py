#!/usr/bin/env python3
"""test_pack.py - texts as token files: what is trained on is the same, and half a file is none.

    test_pack.py TREE COORDINATOR WORKER EXECUTOR GIMBAL"""
import contextlib
import json
import os
import pathlib
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile

tree, coordinator_path, worker_path, executor_path, gimbal_path = sys.argv[1:6]
sys.path.insert(0, tree)
from tests.support import tap  # noqa: E402
from tests.support.coordinator import PATIENCE_S, Coordinator  # noqa: E402

HEADER = 1024
RECORDED = pathlib.Path(tree) / "tests/worker/tokenizer/recorded"


def gimbal(*arguments, code=0, **more):
    done = subprocess.run([gimbal_path, *map(str, arguments)], capture_output=True, timeout=PATIENCE_S, **more)
    assert done.returncode == code, done
    return (done.stdout if code == 0 else done.stderr).decode()


@contextlib.contextmanager
def texts():
    """A folder with texts of all kinds: b"..." by their names."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "poem").write_text("Zwei mal drei macht vier, widdewiddewitt und drei macht neune. " * 90)
        (folder / "more").mkdir()
        (folder / "more/b").write_bytes(bytes(range(1, 256)) * 9)
        (folder / "more/a").write_text("ünïcödé\n" * 99)
        yield folder


def tokens_of(file, width=2):
    """As llm.c reads it."""
    bytes_ = file.read_bytes()
    magic, version, count = struct.unpack_from("<3i", bytes_)
    assert (magic, version) == {2: (20240520, 1), 4: (20240801, 7)}[width], bytes_[:HEADER]
    assert len(bytes_) == HEADER + width * count and not any(bytes_[12:HEADER])
    return list(struct.unpack_from(f"<{count}{'H' if width == 2 else 'I'}", bytes_, HEADER))


def write_job(folder, data, vocab=256):
    job = folder / "job.yaml"
    job.write_text("apiVersion: gimbal/v1\nname: packed\n"
                   f"model: {{family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16, vocab: {vocab}}}\n"
                   f"data: {{{data}}}\ntrain: {{steps: 12, global_batch: 4, lr: 0.003, seed: 3}}\n"
                   "devices: {max: 2}\neval: {every: 6, holdout: 0.1}\n")
    return job


def losses(job, ranks):
    lines = gimbal("train", "--local", ranks, "-f", job, "-q", "--checkpoint", "none", "--output", "jsonl").splitlines()
    steps = [json.loads(line) for line in lines]
    figures = [(step.get("loss"), step.get("gradient_norm"), step.get("heldout_loss")) for step in steps]
    assert len(figures) >= 12, figures
    return figures


def losses_are_those_of_the_text_bit_by_bit():
    with texts() as folder:
        gimbal("data", "pack", folder / "poem", folder / "more", "-o", folder / "corpus.bin", "-q")
        text = f"text: ['{folder}/poem', '{folder}/more']"
        for ranks in (1, 2):
            of_text = losses(write_job(folder, text), ranks)
            assert losses(write_job(folder, f"tokens: ['{folder}/corpus.bin']"), ranks) == of_text
        other = losses(write_job(folder, f"text: ['{folder}/more', '{folder}/poem']"), 1)
        assert other != losses(write_job(folder, text), 1), "the losses would not tell"


def a_cluster_trains_on_it():
    with texts() as folder, Coordinator(coordinator_path) as one, one.worker(worker_path, executor_path):
        gimbal("data", "pack", folder / "poem", "-o", folder / "corpus.bin", "-q")
        for data in (f"text: ['{folder}/poem']", f"tokens: ['{folder}/corpus.bin']"):
            gimbal("submit", "-f", write_job(folder, data), "--wait", "-q", env=one.environment)
        jobs = json.loads(gimbal("jobs", "-a", "-o", "json", env=one.environment))["jobs"]
        assert len({job["loss"] for job in jobs}) == 1 and jobs[0]["loss"], jobs


def texts_may_come_through_pipes():
    with texts() as folder:
        out, poem = folder / "out.bin", (folder / "poem").read_bytes()
        gimbal("data", "pack", "-", "-o", out, input=poem)
        assert tokens_of(out) == list(poem)
        ours, theirs = os.pipe()  # as bash has it for <(...)
        os.write(theirs, b"first ")
        os.close(theirs)
        answer = json.loads(gimbal("data", "pack", f"/dev/fd/{ours}", "-", folder / "more/a", "-e", "-o", out, "--force",
                                   "--output", "json", input=poem, pass_fds=[ours]))
        os.close(ours)
        last = (folder / "more/a").read_bytes()
        assert tokens_of(out) == [*b"first ", 256, *poem, 256, *last, 256]
        size = 6 + len(poem) + len(last)
        assert answer == {"apiVersion": "gimbal/v1", "kind": "TokenFile", "file": str(out), "documents": 3,
                          "text_bytes": size, "tokens": size + 3, "vocab": 257,
                          "file_bytes": HEADER + 2 * (size + 3)}, answer
        words = gimbal("train", "--local", "1", "-f", write_job(folder, f"tokens: ['{out}']"), "-q", "--checkpoint", "none",
                       code=65)
        assert f"token 6 of '{out}' is 256, but model.vocab is 256" in words, words
        losses(write_job(folder, f"tokens: ['{out}']", vocab=257), 1)


def a_tokenizer_makes_the_tokens():
    """Of LLaMA 3's shape: a token begins every text."""
    recorded = json.loads((RECORDED / "texts.json").read_text())
    text, right = max(((bytes.fromhex(one["text"]), one["llama3"]) for one in recorded), key=lambda one: len(one[0]))
    tokenizer = json.loads((RECORDED / "llama3.json").read_text())
    names = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    begin, end = names["<|begin_of_text|>"], names["<|end_of_text|>"]
    with texts() as folder:
        out = folder / "out.bin"
        (folder / "one").write_bytes(text)
        gimbal("data", "pack", "--tokenizer", RECORDED / "llama3.json", folder / "one", "-", "-e", "-o", out, input=b"a")
        assert tokens_of(out) == [begin, *right, end, begin, tokenizer["model"]["vocab"]["a"], end]
        tokenizer["added_tokens"].append({"id": 70000, "content": "<|far|>", "normalized": False})
        far = json.loads(json.dumps(dict(tokenizer, post_processor=None)))
        far["model"]["vocab"]["<|far|>"] = 70000
        (folder / "tokenizer.json").write_text(json.dumps(far))
        answer = json.loads(gimbal("data", "pack", "--tokenizer", folder, "-", "-o", out, "--force", "--output", "json",
                                   input=b"a<|far|>"))
        assert tokens_of(out, 4) == [tokenizer["model"]["vocab"]["a"], 70000] and answer["vocab"] == 70001, answer
        tokenizer["normalizer"] = {"type": "Lowercase"}
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        said = gimbal("data", "pack", "--tokenizer", folder, folder / "one", "-o", out, "--force", code=65)
        assert f"'{folder}/tokenizer.json': its normalizer is Lowercase: null and NFC are supported" in said, said
        tokenizer.update(normalizer=None, added_tokens=[], post_processor=None)
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        said = gimbal("data", "pack", "--tokenizer", folder, folder / "one", "-o", out, "--force", "-e", code=65)
        assert "has no token that is known to end a text: name it, as in --end-of-text=" in said, said


def the_token_that_ends_a_text_has_a_name():
    """That of the flag, or else of the settings beside the tokenizer, or else one that is known."""
    tokenizer = json.loads((RECORDED / "llama3.json").read_text())
    names = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    a = tokenizer["model"]["vocab"]["a"]
    known = {"content": "<｜end▁of▁sentence｜>", "id": max(names.values()) + 1, "normalized": False}
    with texts() as folder:
        out, settings = folder / "out.bin", folder / "tokenizer_config.json"

        def ends(*flags):
            gimbal("data", "pack", "--tokenizer", folder, "-", "-o", out, "--force", *flags, input=b"a")
            begin, text, *end = tokens_of(out)
            assert begin == names["<|begin_of_text|>"] and text == a
            return end
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        assert ends() == [] and ends("-e") == [names["<|end_of_text|>"]]
        assert ends("--end-of-text=<|eot_id|>") == [names["<|eot_id|>"]] and ends("--end-of-text=a") == [a]
        show = ["data", "show", out, "--output", "json", "--tokenizer", folder]
        gimbal("data", "pack", "--tokenizer", folder, folder / "poem", "-", "-o", out, "--force",
               "--end-of-text=<|eot_id|>", input=b"ab")
        counts = [json.loads(gimbal(*show, *more))["files"][0]["documents"]
                  for more in ([], ["--end-of-text=<|eot_id|>"])]
        assert counts == [1, 2], counts
        assert "has no token 'nobody'" in gimbal(*show, "--end-of-text=nobody", code=65)
        assert "name it, too" in gimbal("data", "show", out, "--end-of-text=b", code=64)
        for eos in ("<|eot_id|>", {"content": "<|eot_id|>", "lstrip": False}):
            settings.write_text(json.dumps({"model_max_length": 10 ** 30, "eos_token": eos}))
            assert ends("-e") == [names["<|eot_id|>"]] and ends("-e", "--end-of-text=b") != [names["<|eot_id|>"]]
        for eos in (None, "<nobody>"):
            settings.write_text(json.dumps({"eos_token": eos}))
            assert ends("-e") == [names["<|end_of_text|>"]]
        settings.write_text("{")
        said = gimbal("data", "pack", "--tokenizer", folder, folder / "poem", "-o", out, "--force", code=65)
        assert "tokenizer_config.json' is no JSON: line 1" in said, said
        settings.unlink()
        (folder / "tokenizer.json").write_text(json.dumps(dict(tokenizer, post_processor=None, added_tokens=[known])))
        gimbal("data", "pack", "--tokenizer", folder, "-", "-o", out, "--force", "-e", input=b"a")
        assert tokens_of(out) == [a, len(tokenizer["model"]["vocab"])]
        for flags in (["--tokenizer", folder], []):
            said = gimbal("data", "pack", *flags, folder / "poem", "-o", out, "--force", "--end-of-text=nobody", code=65)
            assert "has no token 'nobody' to end texts with" in said, said
        assert "--end-of-text[=TOKEN]" in gimbal("data", "pack", "--help")


def the_table_tells_what_a_job_needs():
    with texts() as folder:
        out = folder / "corpus.bin"
        lines = gimbal("data", "pack", folder / "poem", "-o", out).splitlines()
        size = (folder / "poem").stat().st_size
        assert lines[0].split() == ["FILE", "DOCUMENTS", "TOKENS", "VOCAB", "SIZE"], lines
        assert lines[1].split()[:4] == [str(out), "1", str(size), "256"], lines
        bare = gimbal("data", "pack", folder / "poem", "-o", out, "--force", "--no-headers").splitlines()
        assert [line.split() for line in bare] == [lines[1].split()], bare


def nonsense_is_told_apart_and_leaves_nothing():
    with texts() as folder:
        poem, out = folder / "poem", folder / "out.bin"
        (folder / "empty").touch()
        before = sorted(folder.iterdir())
        for code, words, arguments in [
                (64, "needs TEXT...", ["-o", out]),
                (64, "needs the file to write: -o corpus.bin", [poem]),
                (64, "--output json", [poem, "-o", "json"]),
                (64, "'-' is given 2 times", ["-", poem, "-", "-o", out]),
                (64, "did you mean --end-of-text?", [poem, "-o", out, "--end-of-txt"]),
                (65, f"cannot read '{folder}/nowhere': No such file", [poem, folder / "nowhere", "-o", out]),
                (65, f"cannot read '{folder}/caf?': No such file", [f"{folder}/caf\udce9", "-o", out]),  # no UTF-8
                (65, f"cannot write '{folder}/no/out.bin': No such file", [poem, "-o", folder / "no/out.bin"]),
                (65, f"'{poem}' is there already: --force replaces it", [folder / "more", "-o", poem]),
                (65, f"'{poem}' is the output too", [folder / "more", poem, "-o", poem, "--force"]),
                (65, "is no regular file", [poem, "-o", "/dev/null", "--force"]),
                (65, "every file is empty", [folder / "empty", "-o", out]),
                (65, "standard input is empty", [poem, "-", "-o", out])]:
            said = gimbal("data", "pack", *arguments, code=code, stdin=subprocess.DEVNULL)
            assert words in said and len(said.splitlines()) == 1, said
        assert "needs a subcommand: pack or show" in gimbal("data", code=64)
        assert "did you mean 'data pack'?" in gimbal("data", "pakc", code=64)
        assert sorted(folder.iterdir()) == before
        assert (folder / "poem").read_text().startswith("Zwei mal drei")


def a_full_disk_leaves_nothing():
    with texts() as folder:
        before = sorted(folder.iterdir())
        limit = 3000
        said = gimbal("data", "pack", folder / "poem", "-o", folder / "out.bin", code=74,
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        assert f"cannot write '{folder}/out.bin'" in said and "File too large" in said, said
        assert sorted(folder.iterdir()) == before


@contextlib.contextmanager
def packing(folder):
    """A command that is in the middle of a text which has no end, and has said so."""
    with subprocess.Popen([gimbal_path, "data", "pack", "-", "-o", folder / "out.bin"], stdin=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        while not select.select([process.stderr], [], [], 0.01)[0]:
            os.write(process.stdin.fileno(), b"another line\n")
        assert b"packed" in process.stderr.readline()
        assert len(list(folder.glob("out.bin*.part"))) == 1
        yield process


def who_is_interrupted_leaves_nothing():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with texts() as folder:
            before = sorted(folder.iterdir())
            with packing(folder) as process:
                process.send_signal(number)
                said = process.stderr.read()  # to the end: the executor has closed it too
                code = process.wait(PATIENCE_S)
                if number == signal.SIGKILL:
                    assert code == -number, code
                else:
                    assert code == 128 + number and b"is not written" in said, (code, said)
            assert sorted(folder.iterdir()) == before


def its_memory_does_not_grow_with_the_text():
    with texts() as folder:
        def most_kib(text):
            gimbal("data", "pack", text, "-o", folder / "out.bin", "--force")
            return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        with open(folder / "long", "wb") as file:
            file.truncate(96 << 20)
        with tempfile.TemporaryDirectory() as name:
            pathlib.Path(name, "short").write_text("short")
            # Of a process of its own, since the figure is the most of all children so far.
            ours, theirs = os.pipe()
            child = os.fork()
            if child == 0:
                short = most_kib(pathlib.Path(name, "short"))
                os.write(theirs, json.dumps([short, most_kib(folder / "long")]).encode())
                os._exit(0)
            os.close(theirs)
            with os.fdopen(ours) as file:
                short, long = json.load(file)
            os.waitpid(child, 0)
        assert long < short + 16 * 1024, f"{short} KiB for a short text, {long} KiB for a long one"


sys.exit(tap.run([losses_are_those_of_the_text_bit_by_bit, a_cluster_trains_on_it, texts_may_come_through_pipes,
                  a_tokenizer_makes_the_tokens, the_token_that_ends_a_text_has_a_name,
                  the_table_tells_what_a_job_needs, nonsense_is_told_apart_and_leaves_nothing,
                  a_full_disk_leaves_nothing, who_is_interrupted_leaves_nothing,
                  its_memory_does_not_grow_with_the_text]))
