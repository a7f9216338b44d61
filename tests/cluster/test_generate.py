#!/usr/bin/env python3
"""test_generate.py - the model of a checkpoint goes on with a text, as it did behind its last step.

    test_generate.py TREE COORDINATOR WORKER EXECUTOR GIMBAL"""
import contextlib
import json
import os
import pathlib
import pty
import subprocess
import sys
import tempfile

tree, coordinator_path, worker_path, executor_path, gimbal_path = sys.argv[1:6]
sys.path.insert(0, tree)
from tests.support import tap  # noqa: E402
from tests.support.coordinator import PATIENCE_S, Coordinator  # noqa: E402

LETTERS = "abcdefghij"
SEED, SAMPLE = 5, 40


def gimbal(*arguments, code=0, **more):
    done = subprocess.run([gimbal_path, *map(str, arguments)], capture_output=True, timeout=PATIENCE_S, **more)
    assert done.returncode == code, done
    return (done.stdout if code == 0 else done.stderr).decode("latin-1")  # a byte is a letter


def write_job(folder, steps=60, **changed):
    """A job that learns the letters in their order, and saves what it has learnt."""
    (folder / "text").write_text(LETTERS * 400)
    sections = {"model": "{family: gpt, layers: 2, hidden: 64, heads: 4, seq: 32}",
                "data": f"{{text: ['{folder}/text']}}",
                "train": f"{{steps: {steps}, global_batch: 8, lr: 0.003, seed: {SEED}}}",
                "eval": f"{{sample: {SAMPLE}}}", "checkpoint": f"{{dir: {folder}/saved, every: {steps}}}", **changed}
    job = folder / "job.yaml"
    job.write_text("apiVersion: gimbal/v1\nname: letters\n"
                   + "".join(f"{key}: {value}\n" for key, value in sections.items()))
    return job


@contextlib.contextmanager
def trained():
    """The folder, its job file, the checkpoint, and the sample that the training ended with."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        job = write_job(folder)
        out = gimbal("train", "--local", "2", "-f", job, "-q")
        saved, = (folder / "saved/letters-local").glob("step-60.epoch-*")
        yield folder, job, saved, out.rstrip("\n")[-SAMPLE:]


def it_writes_what_the_training_wrote():
    with trained() as (_, job, saved, sample):
        assert gimbal("generate", saved, "-f", job, "--seed", SEED, "-n", SAMPLE) == sample + "\n"
        text = gimbal("generate", saved, "-f", job, "-t", "2", "-n", "64")
        assert text == gimbal("generate", saved, "-f", job, "-t", "2", "-n", "64")
        assert text != gimbal("generate", saved, "-f", job, "-t", "2", "-n", "64", "--seed", "2")


def it_goes_on_with_a_prompt():
    with trained() as (_, job, saved, _sample):
        for prompt in ("cde", LETTERS * 20 + "abc", "-j"):
            text = gimbal("generate", saved, "-f", "-", "-t", "0", "-n", "50", "--prompt", prompt,
                          input=job.read_bytes())
            first = LETTERS.index(prompt[-1]) + 1
            assert text == prompt + (LETTERS * 7)[first:first + 50] + "\n", text
        assert gimbal("generate", saved, "-f", job, "-n", "0", "-p", "abc") == "abc\n"


def who_has_read_enough_ends_it():
    with trained() as (_, job, saved, _sample):
        with subprocess.Popen([gimbal_path, "generate", saved, "-f", job, "-n", "1000000"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout.read(5)
            process.stdout.close()
            assert process.wait(PATIENCE_S) == 0 and process.stderr.read() == b""


VERSE = "gr\u00f6\u00dfer als \u4e2d\u6587 oder \U0001f600; "
RECORDED = pathlib.Path(tree) / "tests/worker/tokenizer/recorded"


@contextlib.contextmanager
def versed(shape):
    """A model of a tokenizer's tokens that has learnt a verse, in which characters are several tokens."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        corpus = gimbal("data", "pack", "--tokenizer", RECORDED / f"{shape}.json", "-", "-e", "-o", folder / "corpus.bin",
                        "--output", "json", input=(VERSE * 60).encode())
        vocab = json.loads(corpus)["vocab"]
        tokens = f"tokens: [{folder}/corpus.bin], tokenizer: {RECORDED / shape}.json"
        job = write_job(folder, steps=250, data=f"{{{tokens}}}",
                        model=f"{{family: gpt, layers: 2, hidden: 64, heads: 4, seq: 32, vocab: {vocab}}}")
        out = gimbal("train", "--local", "2", "-f", job, "-q")
        saved, = (folder / "saved/letters-local").glob("step-250.epoch-*")
        yield folder, job, saved, out


def a_model_of_other_tokens_writes_text():
    for shape in ("gpt2", "llama3"):
        with versed(shape) as (folder, job, saved, out):
            text = gimbal("generate", saved, "-f", job, "-t", "0", "-n", "60", "--prompt", VERSE[:3])
            text = text.encode("latin-1").decode().rstrip("\n")
            assert text.startswith(VERSE) and 60 <= len(text.encode()) - len(VERSE[:3].encode()) < 80, text
            sample = gimbal("generate", saved, "-f", job, "--seed", SEED, "-n", SAMPLE)
            shown = sample.encode("latin-1").decode(errors="replace").replace("\ufffd", "?").strip()
            assert out.encode("latin-1").decode().rstrip("\n").endswith(shown), (out, sample)
            job.write_text(job.read_text().replace(f"vocab: {vocab_of(job)}", "vocab: 300"))
            words = gimbal("generate", saved, "-f", job, code=65)
            assert "tokens, but model.vocab is 300" in words and f"{shape}.json" in words, words


def vocab_of(job):
    return int(job.read_text().split("vocab: ")[1].split("}")[0])


def a_terminal_is_shown_whole_characters():
    """Each is written at once, though its bytes are tokens of their own."""
    with versed("gpt2") as (_folder, job, saved, _out):
        ours, theirs = pty.openpty()
        with subprocess.Popen([gimbal_path, "generate", saved, "-f", job, "-t", "0", "-n", "60", "-p", VERSE[:3]],
                              stdout=theirs, stderr=subprocess.PIPE) as process:
            os.close(theirs)
            shown = b""
            with contextlib.suppress(OSError):  # its end
                while part := os.read(ours, 4096):
                    part.decode()
                    shown += part
            os.close(ours)
            assert process.wait(PATIENCE_S) == 0, process.stderr.read()
        assert shown.decode().startswith(VERSE), shown


def a_wrong_tokenizer_ends_the_job_before_its_first_step():
    with versed("gpt2") as (folder, job, _saved, _out):
        job.write_text(job.read_text().replace("gpt2.json", "texts.json").replace("/saved", "/other"))
        words = gimbal("train", "--local", "1", "-f", job, "-q", code=65)
        assert "texts.json': it is no object of keys and values" in words, words
        text = job.read_text().replace(f"tokens: [{folder}/corpus.bin]", f"text: [{folder}/text]")
        job.write_text(text)
        words = gimbal("train", "--local", "1", "-f", job, "-q", code=65)
        assert "gimbal data pack --tokenizer" in words, words


def what_cannot_write_says_why():
    with trained() as (folder, job, saved, _sample):
        assert gimbal("generate", saved, "-n", "8") == gimbal("generate", saved, "-f", job, "-n", "8")
        manifest = saved / "manifest.json"
        whole = manifest.read_text()
        manifest.write_text(json.dumps({key: value for key, value in json.loads(whole).items() if key != "spec"}))
        assert "-f job.yaml" in gimbal("generate", saved, code=64)  # as an older release wrote it
        manifest.write_text(whole)
        assert "not a number from 0 to 100" in gimbal("generate", saved, "-f", job, "-t", "warm", code=64)
        assert "has no manifest.json" in gimbal("generate", f"{folder}/saved", "-f", job, code=65)
        words = gimbal("generate", saved, "-f", job, "--device", "abacus", code=65)
        assert words.startswith("gimbal generate: there is no device 'abacus'") and words.count("\n") == 1, words
        with open("/dev/full", "wb") as full:
            done = subprocess.run([gimbal_path, "generate", saved, "-f", job], stdout=full,
                                  stderr=subprocess.PIPE, timeout=PATIENCE_S)
        assert (done.returncode, done.stderr) == (
            74, b"gimbal generate: write to stdout: No space left on device\n"), done
        wider = write_job(folder, model="{family: gpt, layers: 2, hidden: 128, heads: 4, seq: 32}")
        words = gimbal("generate", saved, "-f", wider, code=65)
        assert "another model" in words, words
        tokens = write_job(folder, data="{tokens: [/proc/nowhere.bin]}", eval="{holdout: 0}",
                           model="{family: gpt, layers: 2, hidden: 64, heads: 4, seq: 32, vocab: 256}")
        words = gimbal("generate", saved, "-f", tokens, code=65)
        assert "nobody knows what the tokens of 'letters' stand for" in words, words
        job = write_job(folder)
        for shard in saved.glob("*.safetensors"):
            shard.write_bytes(shard.read_bytes()[:-1])
        words = gimbal("generate", saved, "-f", job, code=74)
        assert "it is damaged" in words, words


def packed_texts_are_written_up_to_their_ends():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "texts").mkdir()
        for number in range(400):
            (folder / f"texts/{number:03}").write_text(LETTERS)
        gimbal("data", "pack", "-e", folder / "texts", "-o", folder / "letters.bin")
        job = write_job(folder, data=f"{{tokens: ['{folder}/letters.bin'], tokenizer: bytes}}",
                        model="{family: gpt, layers: 2, hidden: 64, heads: 4, seq: 32, vocab: 257}")
        gimbal("train", "--local", "2", "-f", job, "-q")
        saved, = (folder / "saved/letters-local").glob("step-60.epoch-*")
        assert gimbal("generate", saved, "-f", job, "-t", "0", "-n", "50", "-p", "abc") == LETTERS + "\n"
        assert gimbal("generate", saved, "-f", job, "-t", "0", "-n", "2", "-p", "abc") == "abcde\n"
        assert gimbal("generate", saved, "-f", job, "-t", "0", "-n", "50") == LETTERS + "\n"
        assert "with a tokenizer" in gimbal("checkpoint", "export", saved, folder / "out", "-f", job)
        added, = json.loads((folder / "out/tokenizer.json").read_text())["added_tokens"]
        assert (added["id"], added["content"], added["special"]) == (256, "<|endoftext|>", True), added
        config = json.loads((folder / "out/tokenizer_config.json").read_text())
        assert config["eos_token"] == "<|endoftext|>", config


def the_newest_of_a_job_is_taken():
    with Coordinator(coordinator_path) as one, one.worker(worker_path, executor_path):
        mine = {"env": one.environment}
        gimbal("submit", "-f", write_job(one.folder), "--wait", "-q", **mine)
        text = gimbal("generate", "j-1", "-t", "0", "-n", "20", "-p", "hij", **mine)
        assert text == "hij" + LETTERS * 2 + "\n", text
        assert "has no checkpoint of step 7" in gimbal("generate", "j-1", "--step", "7", code=65, **mine)
        assert "there is no job 'j-2'" in gimbal("generate", "j-2", code=65, **mine)


sys.exit(tap.run([it_writes_what_the_training_wrote, it_goes_on_with_a_prompt, who_has_read_enough_ends_it,
                  a_model_of_other_tokens_writes_text, a_terminal_is_shown_whole_characters,
                  a_wrong_tokenizer_ends_the_job_before_its_first_step, what_cannot_write_says_why,
                  packed_texts_are_written_up_to_their_ends, the_newest_of_a_job_is_taken]))
