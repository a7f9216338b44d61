"""language_models.py - what transformers computes for GPT-2, LLaMA, Qwen2 and Qwen3, from the files of a folder
alone: plain numbers in double precision, slow and easy to read, with no package."""
import json
import math
import struct


def read_tensors(path):
    """A safetensors file of f32: its matrices and vectors as lists, by name."""
    data = path.read_bytes()
    length = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + length])
    assert header.pop("__metadata__")["format"] == "pt"
    tensors = {}
    for name, entry in header.items():
        low, high = entry["data_offsets"]
        assert entry["dtype"] == "F32"
        values = struct.unpack(f"<{(high - low) // 4}f", data[8 + length + low:8 + length + high])
        width = entry["shape"][-1]
        tensors[name] = list(values) if len(entry["shape"]) == 1 else [
            list(values[i:i + width]) for i in range(0, len(values), width)]
    return tensors


def transpose(matrix):
    return [list(column) for column in zip(*matrix)]


def product(rows, matrix, bias=None):
    """rows of inputs times a matrix of inputs by outputs"""
    columns = transpose(matrix)
    return [[sum(a * b for a, b in zip(row, column)) + (bias[i] if bias else 0)
             for i, column in enumerate(columns)] for row in rows]


def add(a, b):
    return [[x + y for x, y in zip(*rows)] for rows in zip(a, b)]


def attention(queries, keys, values):
    """One head: a place mixes the values up to its own."""
    scale = 1 / math.sqrt(len(queries[0]))
    out = []
    for place, query in enumerate(queries):
        scores = [scale * sum(a * b for a, b in zip(query, key)) for key in keys[:place + 1]]
        shares = [math.exp(score - max(scores)) for score in scores]
        out.append([sum(s * v[i] for s, v in zip(shares, values)) / sum(shares)
                    for i in range(len(values[0]))])
    return out


def heads(rows, count):
    width = len(rows[0]) // count
    return [[row[i * width:(i + 1) * width] for row in rows] for i in range(count)]


def join(parts):
    return [[x for part in parts for x in part[place]] for place in range(len(parts[0]))]


def gpt2(tensors, config, tokens):
    def weight(name, layer=None):
        return tensors["transformer." + (f"h.{layer}." if layer is not None else "") + name]

    def norm(rows, name, layer=None):
        scale, shift = weight(name + ".weight", layer), weight(name + ".bias", layer)
        out = []
        for row in rows:
            mean = sum(row) / len(row)
            variance = sum((x - mean) ** 2 for x in row) / len(row)
            deviation = math.sqrt(variance + config["layer_norm_epsilon"])
            out.append([(x - mean) / deviation * w + b for x, w, b in zip(row, scale, shift)])
        return out

    def linear(rows, name, layer):
        return product(rows, weight(name + ".weight", layer), weight(name + ".bias", layer))

    def gelu(x):
        return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))

    assert config["activation_function"] == "gelu_new" and config["tie_word_embeddings"]
    x = add([weight("wte.weight")[token] for token in tokens], weight("wpe.weight"))
    for layer in range(config["n_layer"]):
        mixed = linear(norm(x, "ln_1", layer), "attn.c_attn", layer)
        count = config["n_head"]
        all_heads = heads(mixed, 3 * count)
        mixed = join([attention(*all_heads[i::count]) for i in range(count)])
        x = add(x, linear(mixed, "attn.c_proj", layer))
        wide = linear(norm(x, "ln_2", layer), "mlp.c_fc", layer)
        x = add(x, linear([[gelu(a) for a in row] for row in wide], "mlp.c_proj", layer))
    return product(norm(x, "ln_f"), transpose(weight("wte.weight")))


def llama(tensors, config, tokens):
    def linear(rows, name):
        return product(rows, transpose(tensors[name + ".weight"]), tensors.get(name + ".bias"))

    def norm(rows, name):
        scale = tensors[name + ".weight"]
        return [[x * w / math.sqrt(sum(a * a for a in row) / len(row) + config["rms_norm_eps"])
                 for x, w in zip(row, scale)] for row in rows]

    def speed(i, half):
        """From one place to the next, of pair i."""
        rope = config["rope_parameters"]
        assert config["rope_theta"] == rope["rope_theta"]
        assert (config["rope_scaling"] or {"rope_type": "default"})["rope_type"] == rope["rope_type"]
        usual = rope["rope_theta"] ** (-i / half)
        if rope["rope_type"] == "default":
            return usual
        if rope["rope_type"] == "linear":
            return usual / rope["factor"]
        assert rope["rope_type"] == "llama3"
        wave, length = 2 * math.pi / usual, rope["original_max_position_embeddings"]
        if wave > length / rope["low_freq_factor"]:
            return usual / rope["factor"]
        if wave < length / rope["high_freq_factor"]:
            return usual
        smooth = (length / wave - rope["low_freq_factor"]) / (
            rope["high_freq_factor"] - rope["low_freq_factor"])
        return (1 - smooth) * usual / rope["factor"] + smooth * usual

    def turn(rows):
        half = len(rows[0]) // 2
        out = []
        for place, row in enumerate(rows):
            angles = [place * speed(i, half) for i in range(half)]
            out.append([row[i] * math.cos(a) - row[half + i] * math.sin(a)
                        for i, a in enumerate(angles)] +
                       [row[half + i] * math.cos(a) + row[i] * math.sin(a)
                        for i, a in enumerate(angles)])
        return out

    biased = sum(name.endswith(".bias") for name in tensors)
    assert biased == (3 * config["num_hidden_layers"] if config["model_type"] == "qwen2" else 0)
    assert config["hidden_act"] == "silu"
    assert config["tie_word_embeddings"] == ("lm_head.weight" not in tensors)
    count, groups = config["num_attention_heads"], config["num_key_value_heads"]
    x = [tensors["model.embed_tokens.weight"][token] for token in tokens]
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        y = norm(x, at + "input_layernorm")
        queries = heads(linear(y, at + "self_attn.q_proj"), count)
        keys = heads(linear(y, at + "self_attn.k_proj"), groups)
        if config["model_type"] == "qwen3":
            assert len(queries[0][0]) == config["head_dim"]
            queries = [norm(head, at + "self_attn.q_norm") for head in queries]
            keys = [norm(head, at + "self_attn.k_norm") for head in keys]
        queries, keys = [turn(head) for head in queries], [turn(head) for head in keys]
        values = heads(linear(y, at + "self_attn.v_proj"), groups)
        mixed = join([attention(queries[i], keys[i * groups // count], values[i * groups // count])
                      for i in range(count)])
        x = add(x, linear(mixed, at + "self_attn.o_proj"))
        y = norm(x, at + "post_attention_layernorm")
        active = [[g / (1 + math.exp(-g)) * u for g, u in zip(*rows)] for rows in
                  zip(linear(y, at + "mlp.gate_proj"), linear(y, at + "mlp.up_proj"))]
        x = add(x, linear(active, at + "mlp.down_proj"))
    head = "model.embed_tokens" if config["tie_word_embeddings"] else "lm_head"
    return linear(norm(x, "model.norm"), head)


MODELS = {"gpt2": gpt2, "llama": llama, "qwen2": llama, "qwen3": llama}


def loss(folder, tokens):
    """Of every token behind the first; mean, in nats."""
    config = json.loads((folder / "config.json").read_text())
    return loss_of(read_tensors(folder / "model.safetensors"), config, tokens)


def loss_of(tensors, config, tokens):
    logits = MODELS[config["model_type"]](tensors, config, tokens[:-1])
    total = 0
    for row, token in zip(logits, tokens[1:]):
        total += math.log(sum(math.exp(x - max(row)) for x in row)) + max(row) - row[token]
    return total / len(logits)
