#!/usr/bin/env python3
"""test_export.py - what is exported is the model that was trained: from its files alone the loss of
the next step comes out.

    test_export.py TREE GIMBAL EXECUTOR

With transformers and torch installed, these compute it as well."""
import json
import os
import pathlib
import shutil
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


def go_on_from(model, job, tokenizer=None):
    """Train a step with the weights of a folder, and export to "after" beside it: what was said."""
    text = job.read_text().replace("name: tokens", "name: after").replace(
        "seq: 8,", f"seq: 8, weights: '{model}',")
    if tokenizer:
        text = text.replace(text.split("tokenizer: ")[1].split("}")[0], str(tokenizer))
    after = job.parent / "after.yaml"
    after.write_text(text)
    subprocess.run([gimbal, "train", "--local", "1", "-f", after, "-q"], check=True, capture_output=True)
    saved, = job.parent.glob("saved/after-local/step-1.epoch-*")
    shutil.rmtree(job.parent / "after", ignore_errors=True)
    done = subprocess.run([gimbal, "checkpoint", "export", saved, job.parent / "after", "-f", after],
                          capture_output=True, text=True, check=True)
    shutil.rmtree(saved.parent)
    return done.stdout


def what_the_first_folder_says_comes_along():
    own = pathlib.Path(tree) / "tests/worker/tokenizer/recorded/llama3.json"
    with tempfile.TemporaryDirectory() as folder:
        model, done, job = with_tokens(folder, "a text " * 9, "--tokenizer", own, tokenizer=own)
        assert done.returncode == 0, done
        config, _words = configs(model)
        ids = {token["content"]: token["id"] for token in json.loads(own.read_text())["added_tokens"]}
        kept = {"eos_token_id": [ids["<|end_of_text|>"], ids["<|eot_id|>"]], "bos_token_id": ids["<|begin_of_text|>"],
                "max_position_embeddings": 131072}
        (model / "config.json").write_text(json.dumps(config | kept))
        files = {"generation_config.json": '{"eos_token_id": [1, 2]}', "chat_template.jinja": "{{ messages }}",
                 "special_tokens_map.json": "{}",
                 "tokenizer_config.json": '{"model_max_length": 1000000000000000019884624838656,\n'
                                          '"eos_token": {"content": "<|eot_id|>"}, "chat_template": "{{ x }}"}'}
        for name, text in files.items():
            (model / name).write_text(text)
        said, after = go_on_from(model, job), model.parent / "after"
        assert f"and what '{model}' says of texts and chats" in said, said
        for name, text in files.items():
            assert (after / name).read_text() == text, name
        now = json.loads((after / "config.json").read_text())
        assert {key: now[key] for key in kept} == kept, now
        # What the data's tokens are is not said: they are taken for those that the model knows.
        (model / "tokenizer.model").write_bytes(b"\0\1\2")
        said = go_on_from(model, job, "other")
        assert f"with the tokenizer that its weights came with, and what '{model}' says of texts and chats" in said, said
        assert (after / "tokenizer.json").read_bytes() == own.read_bytes(), said
        assert (after / "tokenizer.model").read_bytes() == b"\0\1\2" and json.loads(
            (after / "config.json").read_text())["eos_token_id"] == kept["eos_token_id"]
        # Of other tokens it says nothing that holds; how long texts may be is the model's own.
        other = pathlib.Path(folder, "other.json")
        spec = json.loads(own.read_text())
        spec["model"]["vocab"] = {token: {0: 1, 1: 0}.get(id_, id_) for token, id_ in spec["model"]["vocab"].items()}
        other.write_text(json.dumps(spec))
        said = go_on_from(model, job, other)
        assert f"without what '{model}' says of texts and chats: its tokens are others" in said, said
        now, words = configs(after)
        assert now["max_position_embeddings"] == words["model_max_length"] == 131072, (now, words)
        assert now["eos_token_id"] == ids["<|end_of_text|>"] and not (after / "chat_template.jinja").exists(), now
        (model / "config.json").rename(model / "gone")
        again = subprocess.run([gimbal, "checkpoint", "export", *pathlib.Path(folder).glob("saved/tokens-local/step-1.*"),
                                f"{folder}/gone", "-f", f"{folder}/after.yaml"], capture_output=True, text=True)
        assert "says of texts and chats: it is not there as it was" in again.stdout, again


def windows_that_no_sample_reaches_stay_the_model_s():
    with tempfile.TemporaryDirectory() as folder:
        model, done, job = with_tokens(folder, "a text " * 9)
        assert done.returncode == 0, done
        config, _words = configs(model)
        mistral = {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": 8}
        (model / "config.json").write_text(json.dumps(config | mistral))
        go_on_from(model, job)
        now = json.loads((model.parent / "after/config.json").read_text())
        assert {key: now[key] for key in mistral} == mistral, now
        again = go_on_from(model.parent / "after", job)  # and begins a training itself
        assert "says of texts and chats" in again, again
        # A folder that is another's meanwhile says nothing.
        after = json.loads((model / "config.json").read_text())
        (model / "config.json").write_text(json.dumps(after | {"sliding_window": 7}))
        saved, = pathlib.Path(folder).glob("saved/tokens-local/step-1.epoch-*")
        text = job.read_text().replace("seq: 8,", f"seq: 8, weights: '{model}',")
        (model.parent / "late.yaml").write_text(text)
        done = subprocess.run([gimbal, "checkpoint", "export", saved, f"{folder}/late", "-f", f"{folder}/late.yaml"],
                              capture_output=True, text=True)
        assert "it is not there as it was" in done.stdout, done


def weights_in_bf16_are_those_in_f32_rounded():
    with tempfile.TemporaryDirectory() as folder:
        trained = Trained(programs, folder, "gpt")
        assert trained.export("model", "-f", trained.job).returncode == 0
        assert trained.export("half", "-f", trained.job, "--dtype", "bf16").returncode == 0
        files = [(trained.folder / name / "model.safetensors").read_bytes() for name in ("model", "half")]
        heads = [json.loads(file[8:8 + int.from_bytes(file[:8], "little")]) for file in files]
        values = [file[8 + int.from_bytes(file[:8], "little"):] for file in files]
        assert len(values[0]) == 2 * len(values[1]) and json.loads(
            (trained.folder / "half/config.json").read_text())["torch_dtype"] == "bfloat16"
        for name, entry in heads[1].items():
            if name == "__metadata__":
                continue
            assert entry["dtype"] == "BF16" and heads[0][name]["dtype"] == "F32"
            wide = struct.unpack_from(f"<{(entry['data_offsets'][1] - entry['data_offsets'][0]) // 2}I", values[0],
                                      heads[0][name]["data_offsets"][0])
            narrow = struct.unpack_from(f"<{len(wide)}H", values[1], entry["data_offsets"][0])
            assert all(n == (w + 0x7fff + (w >> 16 & 1)) >> 16 for w, n in zip(wide, narrow)), name
        refused(trained.export("other", "-f", trained.job, "--dtype", "f16"), 64, "--dtype 'f16' is unknown")


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
                  what_the_first_folder_says_comes_along,
                  windows_that_no_sample_reaches_stay_the_model_s,
                  weights_in_bf16_are_those_in_f32_rounded,
                  what_cannot_be_exported_is_refused_and_leaves_nothing,
                  what_ends_it_leaves_nothing]))
