"""one_sample.py - small trainings on data that are one sample, so that the next step's loss is known:
it is of that sample, before the weights are changed."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

TEXT = b"Sphinx of qua"
STEP = 20
MODELS = {"gpt": "", "llama": ", ffn: 24", "llama, in groups": ", kv_heads: 2, ffn: 24",
          "llama, by other numbers": ", ffn: 24, rope_theta: 50.0, norm_epsilon: 0.02",
          "llama, slowed": ", ffn: 24, rope_scaling: {rope_type: linear, factor: 4}",
          "llama, slowed in part": ", ffn: 24, rope_theta: 50.0, rope_scaling: {rope_type: llama3, factor: 8, "
                                  "low_freq_factor: 0.5, high_freq_factor: 2, "
                                  "original_max_position_embeddings: 30}",
          "llama, tied": ", kv_heads: 2, ffn: 24, tied: true",
          "qwen": ", kv_heads: 2, ffn: 24, rope_theta: 50.0, norm_epsilon: 1.0e-6",
          "qwen, tied": ", ffn: 24, tied: true",
          "qwen3": ", kv_heads: 2, head_dim: 6, ffn: 24, norm_epsilon: 1.0e-6"}


class Programs:
    """Where they are."""

    def __init__(self, gimbal, executor):
        self.gimbal, self.executor = gimbal, executor
        os.environ["GIMBAL_EXECUTOR"] = executor


def write_job(folder, name, model, steps, more=""):
    """A job file for a model of MODELS; *more*: what else is in its section model."""
    family = model.split(",", maxsplit=1)[0]
    (folder / "text").write_bytes(TEXT)
    path = folder / f"{name}.yaml"
    path.write_text(
        f"apiVersion: gimbal/v1\nname: {name}\n"
        f"model: {{family: {family}, layers: 2, hidden: 16, heads: 4, seq: {len(TEXT) - 1}"
        f"{MODELS[model]}{more}}}\n"
        f"data: {{text: ['{folder}/text']}}\n"
        f"train: {{steps: {steps}, global_batch: 2, lr: 2.0e-2}}\n"
        "plan: {pin: {tp: 2}}\n"
        f"checkpoint: {{dir: '{folder}/saved', every: {STEP}, keep: 2}}\n")
    return path


def train(programs, job, *more):
    """What came of it, and the loss of every step."""
    done = subprocess.run([programs.gimbal, "train", "--local", "2", "-v", "-f", job, "-o", "jsonl", "--checkpoint", "none",
                           *more],
                          capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done, {line["step"]: line["loss"] for line in lines if line["kind"] == "Step"}


class Trained:
    """A model of MODELS, trained for one step more than its checkpoint has. Each is trained once: who
    asks for it again has a copy, in another folder."""
    once = {}

    def __init__(self, programs, folder, model):
        self.programs, self.folder = programs, pathlib.Path(folder)
        self.job = write_job(self.folder, "trained", model, STEP + 1)
        if model not in self.once:
            self.once[model] = self.train_once(model)
        kept, self.loss = self.once[model]
        shutil.copytree(f"{kept.name}/saved", self.folder / "saved")
        self.saved = self.folder / f"saved/trained-local/step-{STEP}.epoch-1"

    def train_once(self, model):
        kept = tempfile.TemporaryDirectory()
        job = write_job(pathlib.Path(kept.name), "trained", model, STEP + 1)
        done, losses = train(self.programs, job, "--checkpoint", f"{kept.name}/saved")
        assert done.returncode == 0, done
        return kept, losses[STEP + 1]

    def export(self, out, *more, slash=""):
        return subprocess.run([self.programs.gimbal, "checkpoint", "export", *more, self.saved,
                               f"{self.folder / out}{slash}"], capture_output=True, text=True)
