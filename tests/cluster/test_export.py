#!/usr/bin/env python3
"""test_export.py - what is exported is the model that was trained: from its files alone the loss of
the next step comes out.

    test_export.py TREE GIMBAL EXECUTOR

With transformers and torch installed, these compute it as well."""
import json
import os
import signal
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
                  what_cannot_be_exported_is_refused_and_leaves_nothing,
                  what_ends_it_leaves_nothing]))
