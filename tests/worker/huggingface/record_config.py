#!/usr/bin/env python3
"""record_config.py - what each key of a config.json does, according to transformers.

    record_config.py [--venv FOLDER] [--check] [NAME ...]

For every type that is read, and every key that the package writes or reads there, a tiny model is
loaded with the key missing, null and at other values: "same" if its loss is, "other" if not or if
weights are missing, "refused" if it is not loaded. test_config.c compares. Needs
transformers and torch; --venv makes a virtual environment with them, or takes the one that is there. A few
minutes on a core."""
import contextlib
import dataclasses
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import venv

if "--venv" in sys.argv[1:]:
    at = sys.argv.index("--venv")
    python = pathlib.Path(sys.argv[at + 1]) / "bin/python"
    if not python.exists():
        venv.create(python.parents[1], with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "torch", "transformers"], check=True)
    os.execv(python, [python, *sys.argv[:at], *sys.argv[at + 2:]])
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", CUDA_VISIBLE_DEVICES="")
import torch  # noqa: E402
import transformers  # noqa: E402

HERE = pathlib.Path(__file__).parent / "recorded"
SEQ = 12
resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))  # whatever a standard makes of a model
GPT = {"vocab_size": 40, "n_positions": 16, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_inner": 24,
       "initializer_range": 0.4, "bos_token_id": 0, "eos_token_id": 1}
DECODER = {"vocab_size": 40, "max_position_embeddings": 16, "hidden_size": 16, "num_hidden_layers": 2,
           "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 24, "head_dim": 4,
           "rms_norm_eps": 1e-5, "initializer_range": 0.4, "bos_token_id": 0, "eos_token_id": 1}
# By name: the type, and what its base is made with. A part of the keys is recorded of those with a comma: of windows that
# no layer has, or of how positions turn, which releases before 5 write as "old" has it.
BASES = {
    "gpt2": ("gpt2", GPT), "llama": ("llama", DECODER), "mistral": ("mistral", DECODER | {"sliding_window": None}),
    "qwen2": ("qwen2", DECODER), "qwen3": ("qwen3", DECODER | {"head_dim": 6}),
    "llama, slowed": ("llama", DECODER | {"rope_parameters": {
        "rope_type": "llama3", "rope_theta": 50.0, "factor": 8.0, "low_freq_factor": 0.5, "high_freq_factor": 2.0,
        "original_max_position_embeddings": 16}}),
    "qwen2, windows": ("qwen2", DECODER | {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2}),
    "llama, old": ("llama", DECODER | {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 50.0}}),
}
ROPE_WORDS = ("rope", "rotary", "position", "head_dim")
PARTS = {"windows": ("window", "layer_types"), "slowed": ROPE_WORDS, "old": ROPE_WORDS}
# What releases before 5 write, or folders of such are known to have.
OTHER_KEYS = ["_commit_hash", "_name_or_path", "add_cross_attention", "attention_chunk_size", "auto_map",
              "chunk_size_feed_forward", "cross_attention_hidden_size", "finetuning_task", "gradient_checkpointing",
              "is_causal", "is_decoder", "layer_types", "output_past", "per_layer_config", "prefix", "pruned_heads",
              "quantization_config", "sep_token_id", "task_specific_params", "tf_legacy_loss", "tie_encoder_decoder",
              "tokenizer_class", "torch_dtype", "torchscript", "use_bfloat16"]
OF_DECODERS = ["attention_bias", "head_dim", "mlp_bias", "original_max_position_embeddings", "partial_rotary_factor",
               "pretraining_tp", "rope_scaling", "rope_theta", "sliding_window", "use_sliding_window"]
OF_GPT = ["n_ctx", "predict_special_tokens"]
ROPE = [{"rope_type": "default", "rope_theta": 50.0}, {"rope_type": "default"}, {"rope_theta": 10000.0}, {},
        {"type": "linear", "factor": 4.0}, {"rope_type": "linear", "factor": 4.0, "rope_theta": 50.0},
        {"rope_type": "linear", "factor": 1.0, "rope_theta": 10000.0}, {"rope_type": "linear"},
        {"rope_type": "dynamic", "factor": 4.0}, {"rope_type": "default", "factor": 4.0}, {"rope_type": None},
        {"rope_type": "nonsense"}, {"rope_theta": None}, {"rope_theta": 50.0, "rope_type": "llama3", "factor": 8.0},
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}]
ACTIVATIONS = sorted(transformers.activations.ACT2CLS)
VALUES = {
    "rope_scaling": ROPE, "rope_parameters": ROPE, "activation_function": ACTIVATIONS, "hidden_act": ACTIVATIONS,
    "sliding_window": [1, SEQ - 1, SEQ, SEQ + 1, 4096, 0, -1],
    "max_window_layers": [0, 1, 2, 3],
    "layer_types": [["full_attention"] * 2, ["full_attention"] * 3, ["sliding_attention"] * 2, [], ["attention"] * 2],
    "num_key_value_heads": [1, 4], "pruned_heads": [{}, {"0": [1]}],
    "partial_rotary_factor": [0.5, 1.0], "rope_theta": [10000.0, 50.0, 10000],
    "model_type": ["gpt2", "llama", "mistral", "qwen2", "qwen3", "phi3", "gpt_neo", "qwen2_moe", ""],
    "n_inner": [64, 48], "quantization_config": [{"quant_method": "nonsense"}, {}],
    "per_layer_config": [{}, {"1": {"num_key_value_heads": 1}}], "attn_implementation": ["eager", "sdpa"],
    "dtype": ["float32", "bfloat16"], "torch_dtype": ["float32", "float16"],
    "id2label": [{"0": "a", "1": "b"}], "label2id": [{"a": 0, "b": 1}], "architectures": [["GPT2LMHeadModel"], []],
    "layer_norm_epsilon": [1e-6, 1e-5, 1], "rms_norm_eps": [1e-6, 1e-5, 1], "attention_chunk_size": [4, 4096],
    "head_dim": [4, 6, 8], "vocab_size": [39, 41], "n_positions": [15, 17, SEQ], "n_layer": [1, 3],
    "num_hidden_layers": [1, 2, 3], "num_attention_heads": [2, 4, 8], "hidden_size": [8, 16, 32],
    "max_position_embeddings": [8, 16, 32, 4096], "is_causal": [True, False], "use_sliding_window": [True, False],
}
ABSENT = "absent"
torch.set_num_threads(1)


def others(key, value):
    """Values for a key that has this one."""
    if key in VALUES:
        return VALUES[key]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    if isinstance(value, float):
        return [2 * value + 0.1, float("nan")]
    if isinstance(value, str):
        return ["other"]
    if isinstance(value, (list, dict)):
        return [type(value)()]
    return [True, False, 1, "other", {}]


class Reads:
    """The names of attributes of a configuration that are asked for."""

    def __init__(self, kind):
        self.kind, self.names = kind, set()

    def __enter__(self):
        names, inherited = self.names, self.kind.__getattribute__

        def get(config, name):
            names.add(name)
            return inherited(config, name)
        self.kind.__getattribute__ = get
        return self

    def __exit__(self, *_):
        del self.kind.__getattribute__


class Base:
    def __init__(self, folder, name):
        self.type, values = BASES[name]
        self.folder = pathlib.Path(folder)
        self.kind = transformers.models.auto.configuration_auto.CONFIG_MAPPING[self.type]
        torch.manual_seed(3)
        model = transformers.AutoModelForCausalLM.from_config(self.kind(**values))
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(0.3 * torch.randn_like(weight))
        model.save_pretrained(folder)
        self.path = self.folder / "config.json"
        self.config = json.loads(self.path.read_text())
        if name.endswith("old"):
            rope = self.config.pop("rope_parameters")
            self.config |= {"rope_theta": rope.pop("rope_theta"), "rope_scaling": rope}
        if name.endswith("windows"):
            del self.config["layer_types"]  # which say the same as the rest
        self.tokens = torch.randint(40, (4, SEQ + 1), generator=torch.Generator().manual_seed(5))
        self.loss = self.load(self.config)

    def load(self, config):
        """The loss; None if weights are missing, as they are for a model that is huge by its standards."""
        self.path.write_text(json.dumps(config))
        made = transformers.AutoConfig.from_pretrained(self.folder)
        if made.model_type != self.type and made.hidden_size > 64:
            return None
        model, told = transformers.AutoModelForCausalLM.from_pretrained(
            self.folder, output_loading_info=True, dtype=torch.float32)
        if any(told.values()):
            return None
        with torch.no_grad():
            logits = model(self.tokens[:, :-1], return_dict=True).logits.double()
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), self.tokens[:, 1:].flatten()).item()

    def verdict(self, config):
        try:
            loss = self.load(config)
        except Exception:  # whatever it is, it was not loaded
            return "refused"
        return "same" if loss is not None and abs(loss - self.loss) < 1e-6 else "other"

    def keys(self):
        """All that are written or read."""
        with Reads(self.kind) as reads:
            self.load(self.config)
        fields = {field.name for field in dataclasses.fields(self.kind)}
        known = {name for name in reads.names if not name.startswith("__") and (
            name in fields or not hasattr(self.kind, name))}
        generation = set(transformers.GenerationConfig._get_default_generation_params())
        others = OTHER_KEYS + (OF_GPT if self.type == "gpt2" else OF_DECODERS)
        return sorted(known | fields | generation | set(self.kind.attribute_map) | set(self.config) | set(others))

    def record(self, part):
        out = {}
        for key in self.keys():
            if part and not any(word in key for word in part):
                continue
            rest = {k: v for k, v in self.config.items() if k != key}
            value = self.config.get(key, getattr(self.kind(), key, None))
            if isinstance(value, torch.dtype):
                value = "float32"
            cases = {ABSENT: self.verdict(rest)}
            for other in [None, *others(key, value)]:
                cases[json.dumps(other)] = self.verdict(rest | {key: other})
            out[key] = cases
        return out


def print_record(name, base, cases):
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(values)}" for key, values in cases.items())
    return (f'{{"type": {json.dumps(base.type)}, "transformers": "{transformers.__version__}", "seq": {SEQ},\n'
            f' "config": {json.dumps(base.config)},\n "keys": {{\n{lines}\n }}}}\n')


def main(arguments):
    check = "--check" in arguments
    names = [a for a in arguments if a != "--check"] or list(BASES)
    transformers.utils.logging.set_verbosity(100)
    transformers.utils.logging.disable_progress_bar()
    failed = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nothing, \
                contextlib.redirect_stderr(nothing):
            base = Base(folder, name)
            text = print_record(name, base, base.record(PARTS.get(name.partition(", ")[2])))
        path = HERE / f"{name.replace(', ', '-')}.json"
        if check:
            told, now = json.loads(path.read_text()), json.loads(text)
            same = told["config"] == now["config"] and told["keys"] == now["keys"]
            print(f"{name}: {'as recorded' if same else 'not as recorded'}", flush=True)
            failed += not same
        else:
            path.write_text(text)
            print(f"{name}: {text.count('same')} same, {text.count('other')} other, "
                  f"{text.count('refused')} refused", flush=True)
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
