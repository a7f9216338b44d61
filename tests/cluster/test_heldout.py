#!/usr/bin/env python3
"""test_heldout.py - the loss on data that are held out: of all of them, the same with any batch and any plan, or
of as many as the job says; of files of their own; and trainings that learn nothing at all.

    test_heldout.py TREE GIMBAL EXECUTOR"""
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

tree, gimbal_path = sys.argv[1:3]
sys.path.insert(0, tree)
from tests.support import tap  # noqa: E402
from tests.support.coordinator import PATIENCE_S  # noqa: E402

SEQ = 16
WINDOWS = 200
TEXT = bytes(random.Random(7).choices(b"abcdefgh \n", k=SEQ * WINDOWS + 1))
NOTHING = 1e-30  # as a learning rate: the weights stay as they are


def train(folder, evaluation, batch=4, code=0, data=None, weights=None, steps=2, saved=None, more=""):
    job = folder / "job.yaml"
    weights = f", weights: '{weights}'" if weights else ""
    job.write_text("apiVersion: gimbal/v1\nname: held\n"
                   f"model: {{family: gpt, layers: 1, hidden: 16, heads: 2, seq: {SEQ}{weights}}}\n"
                   f"data: {{text: ['{data or folder / 'text'}']}}\n"
                   f"train: {{steps: {steps}, global_batch: {batch}, lr: {NOTHING}}}\n"
                   f"eval: {{{evaluation}}}\n{more}")
    (folder / "text").write_bytes(TEXT)
    done = subprocess.run([gimbal_path, "train", "--local", "2", "-f", job, "-q", "-o", "json", *(
        ["--checkpoint", folder / saved] if saved else [])], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == code, done
    return json.loads(done.stdout) if code == 0 else done.stderr


def loss(folder, *arguments, targets, **more):
    result = train(folder, *arguments, **more)
    assert result["heldout_targets"] == targets, result
    return result["heldout_loss"]


def close(one, other):
    return math.isclose(one, other, rel_tol=1e-5)


def all_that_is_held_out_counts_with_any_batch():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        losses = [loss(folder, "every: 2, holdout: 0.5", batch=batch, targets=WINDOWS // 2 * SEQ)
                  for batch in (2, 3, 7, 40)]
        assert all(close(one, losses[0]) for one in losses), losses
        part = loss(folder, "every: 2, holdout: 0.5, samples: 30", targets=30 * SEQ)
        assert close(part, loss(folder, "every: 2, holdout: 0.5, samples: 30", batch=7, targets=30 * SEQ)), part
        assert not close(part, losses[0]), losses
        assert close(losses[0], loss(folder, "every: 2, holdout: 0.5, samples: 1000", targets=WINDOWS // 2 * SEQ))


def files_of_their_own_are_held_out_as_a_share_is():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        held = WINDOWS // 4 * SEQ
        (folder / "front").write_bytes(TEXT[:-held - 1])
        (folder / "end").write_bytes(TEXT[-held - 1:])
        share = loss(folder, "every: 1, holdout: 0.25", targets=held)
        own = loss(folder, f"every: 1, data: '{folder}/end'", data=folder / "front", targets=held)
        assert close(share, own), (share, own)
        (folder / "end").write_bytes(b"short")
        said = train(folder, f"every: 1, data: '{folder}/end'", code=65)
        assert f"eval.data: 5 tokens are too few for one sample: model.seq {SEQ}" in said, said


def spoil(path):
    """Every number of a vector of a safetensors file is NaN."""
    data = bytearray(path.read_bytes())
    size, = struct.unpack("<Q", data[:8])
    low, high = json.loads(data[8:8 + size])["transformer.ln_f.weight"]["data_offsets"]
    for at in range(8 + size + low, 8 + size + high, 4):
        data[at:at + 4] = struct.pack("<f", math.nan)
    path.write_bytes(data)


def a_training_of_which_no_step_is_finite_has_failed():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        train(folder, "", saved="saved")
        saved, = folder.glob("saved/*/step-2.epoch-1")
        subprocess.run([gimbal_path, "checkpoint", "export", saved, folder / "model", "-f", folder / "job.yaml"],
                       check=True, capture_output=True, timeout=PATIENCE_S)
        spoil(folder / "model/model.safetensors")
        for more, saved in (("", "none"), ("elastic: {max_skipped: 0}\n", "nothing")):
            said = train(folder, "", weights=folder / "model", steps=4, code=1, more=more, saved=saved)
            assert "no step from 1 to 4 had a finite loss and gradient: nothing was learned" in said, said
            assert not list(folder.glob(f"{saved}/*/step-*")), more


sys.exit(tap.run([all_that_is_held_out_counts_with_any_batch, files_of_their_own_are_held_out_as_a_share_is,
                  a_training_of_which_no_step_is_finite_has_failed]))
