#!/usr/bin/env python3
"""test_export.py - what is exported is the model that was trained: from its files alone the loss of
the next step comes out.

    test_export.py TREE GIMBAL EXECUTOR

With transformers and torch installed, these compute it as well."""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile

tree, gimbal, executor = sys.argv[1:4]
sys.path.insert(0, tree)
from tests.cluster import language_models  # noqa: E402
from tests.cluster.one_sample import MODELS, STEP, TEXT, Programs, Trained  # noqa: E402
from tests.support import tap  # noqa: E402

programs = Programs(gimbal, executor)


def by_transformers(folder):
    """The loss as the real one computes it, and a check of the tokenizer; None without it."""
    try:
        import torch
        import transformers
    except ImportError:
        return None
    transformers.utils.logging.disable_progress_bar()
    model, told = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not any(told.values()), told
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    text = bytes(range(128)).decode() + "äöü€😀"
    assert tokenizer(text)["input_ids"] == list(text.encode())
    assert tokenizer.decode(list(text.encode())) == text
    tokens = torch.tensor(list(TEXT))
    with torch.no_grad():
        logits = model(tokens[None, :-1]).logits[0].double()
    return torch.nn.functional.cross_entropy(logits, tokens[1:]).item()


def check_loss(name):
    with tempfile.TemporaryDirectory() as folder:
        trained = Trained(programs, folder, name)
        done = trained.export("model", "-f", trained.job)
        assert done.returncode == 0 and f"step {STEP} of trained" in done.stdout, done
        ours = language_models.loss(trained.folder / "model", list(TEXT))
        assert abs(ours - trained.loss) < 2e-6, f"{name}: {ours}, training had {trained.loss}"
        theirs = by_transformers(trained.folder / "model")
        print(f"# {name}: {trained.loss} in training, {ours} from the files, "
              f"{theirs or 'not computed'} by transformers")
        assert theirs is None or abs(theirs - trained.loss) < 2e-6


def a_token_is_a_byte():
    with tempfile.TemporaryDirectory() as folder:
        trained = Trained(programs, folder, "gpt")
        done = trained.export("model", "-f", trained.job, slash="/")
        assert done.returncode == 0 and f"{trained.folder}/model: step" in done.stdout, done
        model = json.loads((trained.folder / "model/tokenizer.json").read_text())["model"]
        assert sorted(model["vocab"].values()) == list(range(256)) and not model["merges"]
        for character, byte in model["vocab"].items():
            assert len(character) == 1 and (chr(byte) == character or ord(character) >= 256)


def with_tokens(folder, text, *more, tokenizer="bytes"):
    """Train a step on a packed text, and export: the folder, what was said, and the job."""
    folder = pathlib.Path(folder)
    pack = [gimbal, "data", "pack", "-", "-e", "-o", folder / "corpus.bin", "--output", "json", *more]
    packed = subprocess.run(pack, input=text.encode(), capture_output=True, check=True)
    job = folder / "job.yaml"
    job.write_text("apiVersion: gimbal/v1\nname: tokens\nmodel: {family: llama, layers: 1, hidden: 8, heads: 2, seq: 8, "
                   f"vocab: {json.loads(packed.stdout)['vocab']}}}\n"
                   f"data: {{tokens: ['{folder}/corpus.bin'], tokenizer: {tokenizer}}}\n"
                   f"train: {{steps: 1, global_batch: 1, lr: 1.0e-3}}\ncheckpoint: {{dir: '{folder}/saved'}}\n")
    subprocess.run([gimbal, "train", "--local", "1", "-f", job, "-q"], check=True, capture_output=True)
    saved, = folder.glob("saved/tokens-local/step-1.epoch-*")
    done = subprocess.run([gimbal, "checkpoint", "export", saved, folder / "model", "-f", job], capture_output=True,
                          text=True)
    return folder / "model", done, job


def configs(model):
    return [json.loads((model / name).read_text()) for name in ("config.json", "tokenizer_config.json")]


def encode_by_transformers(model, text):
    """A document as the real one has it, and its end; None without it."""
    try:
        import transformers
    except ImportError:
        return None
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    return tokenizer(text)["input_ids"] + [tokenizer.eos_token_id]


def tokens_of(file):
    bytes_ = file.read_bytes()
    return list(struct.unpack_from(f"<{(len(bytes_) - 1024) // 2}H", bytes_, 1024))


def the_tokenizer_of_the_data_comes_with_it():
    text = "tokens and more tokens, so that there is a sample"
    for shape, end in (("gpt2", "<|endoftext|>"), ("llama3", "<|end_of_text|>")):
        with tempfile.TemporaryDirectory() as folder:
            own = pathlib.Path(tree) / f"tests/worker/tokenizer/recorded/{shape}.json"
            model, done, job = with_tokens(folder, text, "--tokenizer", own, tokenizer=own)
            assert done.returncode == 0 and "with the tokenizer of its data" in done.stdout, done
            assert (model / "tokenizer.json").read_bytes() == own.read_bytes()
            ids = {token["content"]: token["id"] for token in json.loads(own.read_text())["added_tokens"]}
            config, words = configs(model)
            assert config["eos_token_id"] == ids[end] and words["eos_token"] == end, (config, words)
            assert encode_by_transformers(model, text) in (None, tokens_of(model.parent / "corpus.bin"))
            job.write_text(job.read_text().replace(str(own), "other"))
            again = subprocess.run([gimbal, "checkpoint", "export", *pathlib.Path(folder).glob("saved/*/step-1.*"),
                                    f"{folder}/bare", "-f", job], capture_output=True, text=True)
            assert "without a tokenizer" in again.stdout, again
            bare = pathlib.Path(folder, "bare")
            assert sorted(path.name for path in bare.iterdir()) == ["config.json", "model.safetensors"]
            assert json.loads((bare / "config.json").read_text())["eos_token_id"] is None


def bytes_that_end_texts_say_which_token_does():
    with tempfile.TemporaryDirectory() as folder:
        model, done, _job = with_tokens(folder, "a text, and its end")
        assert done.returncode == 0 and "a token is a byte" in done.stdout, done
        config, words = configs(model)
        assert config["eos_token_id"] == 256 and words["eos_token"] == "<|endoftext|>", (config, words)


def refused(done, status, words):
    assert done.returncode == status and words in done.stderr and not done.stdout, done


def what_cannot_be_exported_is_refused_and_leaves_nothing():
    with tempfile.TemporaryDirectory() as folder:
        trained = Trained(programs, folder, "gpt")
        refused(trained.export("model"), 64, "needs the job file")
        refused(trained.export("model", "-f", trained.job, "--step", "3"), 64, "is for a JOB")
        (trained.folder / "model").mkdir()
        refused(trained.export("model", "-f", trained.job), 65, "gimbal checkpoint export: '")
        refused(trained.export("model", "-f", trained.job), 65, "is there already")
        (trained.folder / "model").rmdir()
        (trained.folder / "model.part").mkdir()
        refused(trained.export("model", "-f", trained.job), 65, "was killed; delete it")
        (trained.folder / "model.part").rmdir()
        other = trained.folder / "other.yaml"
        other.write_text(trained.job.read_text().replace("hidden: 16", "hidden: 32"))
        refused(trained.export("model", "-f", other), 65, "embed.tokens.weight")
        shard = trained.saved / "rank-00001.safetensors"
        data = bytearray(shard.read_bytes())
        data[8 + int.from_bytes(data[:8], "little")] ^= 1  # of its first tensor, a weight
        shard.write_bytes(data)
        refused(trained.export("model", "-f", trained.job), 74, "is damaged")
        assert not list(trained.folder.glob("model*"))


def what_ends_it_leaves_nothing():
    def be_told():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        os.kill(os.getpid(), signal.SIGTERM)

    with tempfile.TemporaryDirectory() as folder:
        trained = Trained(programs, folder, "gpt")
        done = subprocess.run([executor, "--export-checkpoint", trained.saved, "--job", trained.job,
                               "--out", trained.folder / "model"], preexec_fn=be_told)
        assert done.returncode == 130, done
        assert not list(trained.folder.glob("model*"))


computes = [(f"{name} computes the same loss", lambda name=name: check_loss(name)) for name in MODELS]
sys.exit(tap.run([*computes, a_token_is_a_byte,
                  the_tokenizer_of_the_data_comes_with_it,
                  bytes_that_end_texts_say_which_token_does,
                  what_cannot_be_exported_is_refused_and_leaves_nothing,
                  what_ends_it_leaves_nothing]))
