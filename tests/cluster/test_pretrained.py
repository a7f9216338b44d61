#!/usr/bin/env python3
"""test_pretrained.py - a training starts with the weights in a folder: the loss of its first step is
that of the model there, however its files are written.

    test_pretrained.py TREE GIMBAL EXECUTOR

With transformers and torch installed, a folder that these have saved is one of them."""
import json
import pathlib
import shutil
import struct
import sys
import tempfile

tree, gimbal, executor = sys.argv[1:4]
sys.path.insert(0, tree)
from tests.cluster import language_models  # noqa: E402
from tests.cluster.one_sample import MODELS, TEXT, Programs, Trained, train, write_job  # noqa: E402
from tests.support import tap  # noqa: E402

programs = Programs(gimbal, executor)
WEIGHTS = "model.safetensors"
LLAMA_3 = {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
           "original_max_position_embeddings": 8192}


class Exported(Trained):
    """A trained model, exported to folder/model."""

    def __init__(self, folder, model):
        super().__init__(programs, folder, model)
        self.model, self.out, self.count = model, self.folder / "model", 0
        assert self.export("model", "-f", self.job).returncode == 0

    def begin(self, weights, model=None):
        self.count += 1
        job = write_job(self.folder, f"begun-{self.count}", model or self.model, 1, f", weights: '{weights}'")
        return train(programs, job)


def to_bf16(value):
    """The upper half, rounded to the nearest."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.pack("<H", (bits + 0x7fff + (bits >> 16 & 1)) >> 16)


def from_bf16(data):
    return struct.unpack("<f", b"\0\0" + data)[0]


DTYPES = {
    "F32": (lambda x: struct.pack("<f", x), lambda data: struct.unpack("<f", data)[0]),
    "F16": (lambda x: struct.pack("<e", x), lambda data: struct.unpack("<e", data)[0]),
    "BF16": (to_bf16, from_bf16),
    "I16": (lambda x: struct.pack("<h", 0), None),
}


def write_tensors(path, tensors, dtype="F32"):
    """Vectors and matrices as lists, with a header of any length; what they are then is returned."""
    pack, unpack = DTYPES[dtype]
    header, data, rounded = {}, b"", {}
    for name, tensor in tensors.items():
        flat = tensor if not isinstance(tensor[0], list) else [x for row in tensor for x in row]
        shape = [len(flat)] if flat is tensor else [len(tensor), len(tensor[0])]
        packed = [pack(x) for x in flat]
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + sum(map(len, packed))]}
        data += b"".join(packed)
        if unpack:
            values = [unpack(x) for x in packed]
            width = shape[-1]
            rounded[name] = values if flat is tensor else [
                values[i:i + width] for i in range(0, len(values), width)]
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return rounded


def check_begin(name):
    with tempfile.TemporaryDirectory() as folder:
        exported = Exported(folder, name)
        done, losses = exported.begin(exported.out)
        assert done.returncode == 0 and "starts with the weights in" in done.stderr, done
        assert abs(losses[1] - exported.loss) < 2e-6, f"{losses[1]}, not {exported.loss}"


def check_dtype(dtype):
    """Small numbers are among them: what f16 has below its least normal one."""
    with tempfile.TemporaryDirectory() as folder:
        exported = Exported(folder, "gpt")
        tensors = language_models.read_tensors(exported.out / WEIGHTS)
        rounded = write_tensors(exported.out / WEIGHTS, tensors, dtype)
        config = json.loads((exported.out / "config.json").read_text())
        right = language_models.loss_of(rounded, config, list(TEXT))
        assert abs(right - exported.loss) > 1e-7, "nothing was rounded"
        done, losses = exported.begin(exported.out)
        assert done.returncode == 0, done
        assert abs(losses[1] - right) < 2e-6, f"{losses[1]}, not {right}"


def many_files_with_an_index():
    with tempfile.TemporaryDirectory() as folder:
        exported = Exported(folder, "llama")
        tensors = language_models.read_tensors(exported.out / WEIGHTS)
        names = {name: f"model-{i % 3}.safetensors" for i, name in enumerate(tensors)}
        for file in set(names.values()):
            write_tensors(exported.out / file,
                          {name: tensors[name] for name in tensors if names[name] == file})
        (exported.out / (WEIGHTS + ".index.json")).write_text(json.dumps({"weight_map": names}))
        (exported.out / WEIGHTS).unlink()
        done, losses = exported.begin(exported.out)
        assert done.returncode == 0 and abs(losses[1] - exported.loss) < 2e-6, done


def names_without_the_model_s_and_more_places():
    with tempfile.TemporaryDirectory() as folder:
        exported = Exported(folder, "gpt")
        tensors = {name.removeprefix("transformer."): tensor for name, tensor in
                   language_models.read_tensors(exported.out / WEIGHTS).items()}
        tensors["wpe.weight"] += [[9.0] * 16] * 5
        change_config(exported.out / "config.json", "n_positions", len(tensors["wpe.weight"]))
        tensors["h.0.attn.bias"] = [1.0] * 7  # a mask, in the files of GPT-2
        write_tensors(exported.out / WEIGHTS, tensors)
        done, losses = exported.begin(exported.out)
        assert done.returncode == 0 and abs(losses[1] - exported.loss) < 2e-6, done


def a_folder_of_transformers():
    try:
        import torch
        import transformers
    except ImportError:
        print("# transformers is not installed")
        return
    for name in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            exported = Exported(folder, name)
            model = transformers.AutoModelForCausalLM.from_pretrained(exported.out)
            model.save_pretrained(exported.folder / "again", max_shard_size="20KB")
            assert list((exported.folder / "again").glob("*.index.json"))
            done, losses = exported.begin(exported.folder / "again")
            assert done.returncode == 0 and abs(losses[1] - exported.loss) < 2e-6, done
            model.to(torch.float16).save_pretrained(exported.folder / "half")
            done, losses = exported.begin(exported.folder / "half")
            assert done.returncode == 0 and abs(losses[1] - exported.loss) < 1e-3, done


def refused(begun, status, words):
    done = begun[0]
    assert done.returncode == status and words in done.stderr, done


def change_config(path, key, value):
    config = json.loads(path.read_text())
    config[key] = value
    if value is None:
        del config[key]
    path.write_text(json.dumps(config))


def what_is_another_model_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        exported = Exported(folder, "llama")
        refused(exported.begin("out"), 65, "must begin with '/'")
        refused(exported.begin("/proc/nowhere"), 65, "/proc/nowhere/config.json': No such file")
        refused(exported.begin(exported.out, "gpt"), 65, 'model_type is "llama"')
        refused(exported.begin(exported.out, "llama, in groups"), 65,
                "num_key_value_heads is 4, the job's model has 2")
        config = exported.out / "config.json"
        for key, value, words in [("rope_theta", 500000.0, "rope_theta is 500000.0"),
                                  ("rope_scaling", LLAMA_3, "rope_parameters is"),
                                  ("rope_parameters", LLAMA_3 | {"rope_theta": 1e4}, "rope_parameters is"),
                                  ("rope_parameters", {"rope_type": "default", "partial_rotary_factor": 0.5},
                                   "rope_parameters is"),
                                  ("rms_norm_eps", 1e-6, "rms_norm_eps is 1e-6"),
                                  ("num_hidden_layers", 3, "num_hidden_layers is 3"),
                                  ("attention_bias", True, "attention_bias is true"),
                                  ("tie_word_embeddings", True, "tie_word_embeddings is true")]:
            was = config.read_text()
            change_config(config, key, value)
            refused(exported.begin(exported.out), 65, words)
            config.write_text(was)
        config.write_text("[]")
        refused(exported.begin(exported.out), 65, "config.json: it is no object")


def a_folder_of_any_release_says_how_positions_turn():
    with tempfile.TemporaryDirectory() as folder:
        exported = Exported(folder, "llama, slowed")
        config = exported.out / "config.json"
        both = config.read_text()
        for missing in [["rope_parameters"], ["rope_scaling", "rope_theta"]]:
            for key in missing:
                change_config(config, key, None)
            done, losses = exported.begin(exported.out)
            assert done.returncode == 0 and abs(losses[1] - exported.loss) < 2e-6, done
            config.write_text(both)
        change_config(config, "rope_parameters", None)
        change_config(config, "rope_scaling", {"type": "linear", "factor": 4})  # until 4.43
        done, losses = exported.begin(exported.out)
        assert done.returncode == 0 and abs(losses[1] - exported.loss) < 2e-6, done
        for scaling in [{"type": "dynamic", "factor": 4}, {"rope_type": "linear", "factor": 2}, None]:
            change_config(config, "rope_scaling", scaling)
            refused(exported.begin(exported.out), 65, "rope_parameters is")


def a_head_of_its_own_is_no_tied_one():
    with tempfile.TemporaryDirectory() as folder:
        exported = Exported(folder, "llama, tied")
        tensors = language_models.read_tensors(exported.out / WEIGHTS)
        assert "lm_head.weight" not in tensors
        refused(exported.begin(exported.out, "llama, in groups"), 65,
                "tie_word_embeddings is true, the job's model has false")
        # The table may be there a second time.
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
        write_tensors(exported.out / WEIGHTS, tensors)
        done, losses = exported.begin(exported.out)
        assert done.returncode == 0 and abs(losses[1] - exported.loss) < 2e-6, done
        tensors["lm_head.weight"] = tensors["lm_head.weight"][::-1]
        write_tensors(exported.out / WEIGHTS, tensors)
        refused(exported.begin(exported.out), 65,
                "'lm_head.weight' is another than 'model.embed_tokens.weight'")
        tensors["lm_head.weight"].reverse()
        write_tensors(exported.out / WEIGHTS, tensors)
        # What a file does not say is what transformers takes it for.
        config = exported.out / "config.json"
        change_config(config, "tie_word_embeddings", None)
        refused(exported.begin(exported.out), 65,
                "tie_word_embeddings is not said, so that transformers makes it false; the job's model has true")
        done, losses = exported.begin(exported.out, "llama, in groups")
        assert done.returncode == 0 and abs(losses[1] - exported.loss) < 2e-6, done


def a_window_is_another_model():
    with tempfile.TemporaryDirectory() as folder:
        exported = Exported(folder, "qwen")
        refused(exported.begin(exported.out, "llama, in groups"), 65, 'model_type is "qwen2"')
        config = exported.out / "config.json"
        change_config(config, "sliding_window", 4)
        done, losses = exported.begin(exported.out)
        assert done.returncode == 0 and abs(losses[1] - exported.loss) < 2e-6, done
        change_config(config, "use_sliding_window", True)  # by layers from max_window_layers on, 28
        done, losses = exported.begin(exported.out)
        assert done.returncode == 0 and abs(losses[1] - exported.loss) < 2e-6, done
        change_config(config, "max_window_layers", 1)
        refused(exported.begin(exported.out), 65, "sliding_window is 4, the job's model has null")


def mistral_without_a_window_is_llama():
    """As long as a sample, it is none; the standard is 4096."""
    with tempfile.TemporaryDirectory() as folder:
        exported = Exported(folder, "llama, in groups")
        config = exported.out / "config.json"
        change_config(config, "model_type", "mistral")
        for window in [None, 4096, 12]:
            change_config(config, "sliding_window", window)
            done, losses = exported.begin(exported.out)
            assert done.returncode == 0 and abs(losses[1] - exported.loss) < 2e-6, done
        change_config(config, "sliding_window", 11)
        refused(exported.begin(exported.out), 65, "sliding_window is 11, the job's model has null")
        config.write_text(config.read_text().replace('"sliding_window": 11', '"sliding_window": null'))
        done, losses = exported.begin(exported.out)
        assert done.returncode == 0 and abs(losses[1] - exported.loss) < 2e-6, done
        refused(exported.begin(exported.out, "qwen"), 65, 'model_type is "mistral"')
        change_config(config, "rms_norm_eps", 1e-6)
        refused(exported.begin(exported.out), 65, "rms_norm_eps is 1e-6")


def a_config_says_all_that_it_has_to():
    with tempfile.TemporaryDirectory() as folder:
        exported = Exported(folder, "gpt")
        config = exported.out / "config.json"
        was = config.read_text()
        for key, words in [("model_type", "model_type is not said: gpt2 would be right"),
                           ("n_head", "n_head is not said, so that transformers makes it 12;"),
                           ("n_layer", "n_layer is not said, so that transformers makes it 12;")]:
            change_config(config, key, None)
            refused(exported.begin(exported.out), 65, words)
            config.write_text(was)
        change_config(config, "scale_attn_by_inverse_layer_idx", True)
        refused(exported.begin(exported.out), 65, "scale_attn_by_inverse_layer_idx is true, the job's model has false")
        config.write_text(was)
        change_config(config, "attn_logit_cap", 30)
        refused(exported.begin(exported.out), 65, "attn_logit_cap is no key that this release knows of gpt2")
        config.write_text(was)
        change_config(config, "quantization_config", {"bits": 4})
        refused(exported.begin(exported.out), 65, 'quantization_config is {"bits":4}: a model with it is not supported')
        # Python writes what JSON does not have, and the same has several names.
        config.write_text(was)
        for key, value in [("resid_pdrop", float("nan")), ("activation_function", "gelu_pytorch_tanh")]:
            change_config(config, key, value)
        done, losses = exported.begin(exported.out)
        assert done.returncode == 0 and abs(losses[1] - exported.loss) < 2e-6, done


def the_same_in_other_words_is_accepted():
    with tempfile.TemporaryDirectory() as folder:
        exported = Exported(folder, "llama")
        config = exported.out / "config.json"
        said = json.loads(config.read_text())
        words = {"num_key_value_heads": None, "head_dim": None, "hidden_act": "swish", "rope_scaling": {},
                 "rope_parameters": {"type": "linear", "factor": 1}, "initializer_range": float("nan")}
        config.write_text(json.dumps(said | words))
        done, losses = exported.begin(exported.out)
        assert done.returncode == 0 and abs(losses[1] - exported.loss) < 2e-6, done
        config.write_text(json.dumps(said | {"num_attention_heads": None}))
        refused(exported.begin(exported.out), 65, "num_attention_heads is null, which it cannot be")


def a_tied_table_may_have_the_name_of_the_head():
    for name, own in [("gpt", "transformer.wte.weight"), ("llama, tied", "model.embed_tokens.weight")]:
        with tempfile.TemporaryDirectory() as folder:
            exported = Exported(folder, name)
            tensors = language_models.read_tensors(exported.out / WEIGHTS)
            tensors["lm_head.weight"] = tensors.pop(own)
            write_tensors(exported.out / WEIGHTS, tensors)
            done, losses = exported.begin(exported.out)
            assert done.returncode == 0 and abs(losses[1] - exported.loss) < 2e-6, done


def a_padded_vocabulary_is_cut_and_said():
    """The loss is that of the rows that the job has, as it is without the others."""
    with tempfile.TemporaryDirectory() as folder:
        exported = Exported(folder, "llama")
        tensors = language_models.read_tensors(exported.out / WEIGHTS)
        for name in ("model.embed_tokens.weight", "lm_head.weight"):
            tensors[name] += [[0.5] * 16] * 64
        write_tensors(exported.out / WEIGHTS, tensors)
        refused(exported.begin(exported.out), 65, "is 320 x 16, the job's model needs 256 x 16")
        change_config(exported.out / "config.json", "vocab_size", 320)
        done, losses = exported.begin(exported.out)
        assert done.returncode == 0 and abs(losses[1] - exported.loss) < 2e-6, done
        assert "has 320 tokens, and the job's model 256: the last 64 are left out" in done.stderr, done
        change_config(exported.out / "config.json", "vocab_size", 255)
        refused(exported.begin(exported.out), 65, "vocab_size is 255, the job's model has 256")
        change_config(exported.out / "config.json", "vocab_size", 256 + 1024)
        refused(exported.begin(exported.out), 65, "vocab_size is 1280, the job's model has 256")


def a_tokenizer_that_is_not_that_of_the_data_is_said():
    with tempfile.TemporaryDirectory() as folder:
        exported = Exported(folder, "gpt")
        done, _losses = exported.begin(exported.out)  # with a tokenizer of bytes
        assert done.returncode == 0 and "its tokenizer" not in done.stderr, done
        gpt2 = pathlib.Path(tree) / "tests/worker/tokenizer/recorded/gpt2.json"
        shutil.copy(gpt2, exported.out / "tokenizer.json")
        done, losses = exported.begin(exported.out)
        assert done.returncode == 0 and abs(losses[1] - exported.loss) < 2e-6, done
        assert "warning: model.weights" in done.stderr and "its tokenizer is not that of the data" in done.stderr, done
        assert f"gimbal data pack --tokenizer {exported.out}" in done.stderr, done
        (exported.out / "tokenizer.json").unlink()
        (exported.out / "vocab.json").write_text("{}")
        done, _losses = exported.begin(exported.out)
        assert "its tokenizer (vocab.json) is not that of the data, whose tokens are bytes" in done.stderr, done


def files_that_lack_something_are_refused():
    with tempfile.TemporaryDirectory() as folder:
        exported = Exported(folder, "gpt")
        path = exported.out / WEIGHTS
        whole = language_models.read_tensors(path)
        name = "transformer.ln_f.bias"
        write_tensors(path, {k: v for k, v in whole.items() if k != name})
        refused(exported.begin(exported.out), 65, f"it has no tensor '{name}'")
        write_tensors(path, dict(whole, **{name: [1.0] * 15}))
        refused(exported.begin(exported.out), 65, f"'{name}' is 15, the job's model needs 16")
        write_tensors(path, whole, "I16")
        refused(exported.begin(exported.out), 65, "is I16, one of F32, BF16 and F16")
        path.write_bytes(b"\xff" * 40)
        refused(exported.begin(exported.out), 65, "is no safetensors file")
        path.unlink()
        refused(exported.begin(exported.out), 65, "No such file")
        (exported.out / "pytorch_model.bin").write_bytes(b"")
        refused(exported.begin(exported.out), 65, "it has pytorch_model.bin, and no model.safetensors: that or several")


def a_training_that_goes_on_keeps_its_own():
    with tempfile.TemporaryDirectory() as folder:
        exported = Exported(folder, "gpt")
        job = write_job(exported.folder, "trained", "gpt", 22, f", weights: '{exported.out}'")
        done, losses = train(programs, job, "--resume", "--checkpoint", exported.folder / "saved")
        assert done.returncode == 0 and list(losses) == [22], done
        assert "starts with the weights in" not in done.stderr, done


begins = [(f"{name} begins where it was", lambda name=name: check_begin(name)) for name in MODELS]
dtypes = [(f"weights in {dtype}", lambda dtype=dtype: check_dtype(dtype))
          for dtype in ("F16", "BF16")]
sys.exit(tap.run([*begins, *dtypes, many_files_with_an_index,
                  names_without_the_model_s_and_more_places, a_folder_of_transformers,
                  what_is_another_model_is_refused, a_head_of_its_own_is_no_tied_one,
                  a_folder_of_any_release_says_how_positions_turn, a_window_is_another_model, mistral_without_a_window_is_llama,
                  files_that_lack_something_are_refused, a_config_says_all_that_it_has_to,
                  the_same_in_other_words_is_accepted, a_tied_table_may_have_the_name_of_the_head, a_padded_vocabulary_is_cut_and_said,
                  a_tokenizer_that_is_not_that_of_the_data_is_said,
                  a_training_that_goes_on_keeps_its_own]))
