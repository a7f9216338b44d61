#!/usr/bin/env python3
"""test_safetensors.py - the shards of a checkpoint are what the safetensors package reads.

    test_safetensors.py TREE WRITE_CHECKPOINT

Two random plans write the same state; put together by their headers, it is the same again."""
import json
import pathlib
import subprocess
import sys
import tempfile

tree, write_checkpoint = sys.argv[1:3]
sys.path.insert(0, tree)
from tests.support import tap  # noqa: E402

try:
    import numpy
    from safetensors import safe_open
except ImportError as error:
    tap.skip("safetensors", f"{error}; 'pip install safetensors numpy' brings it")


def whole_state(folder):
    """Every part of every tensor, from all shards, with each element written once."""
    manifest = json.loads((folder / "manifest.json").read_text())
    shapes = manifest["model"]["tensors"]
    state, seen = {}, {}
    for shard in manifest["shards"]:
        path = folder / shard["file"]
        assert path.stat().st_size == shard["size"], f"{path} has another size"
        with safe_open(path, framework="numpy") as file:
            places = json.loads(file.metadata()["slices"])
            assert set(places) == set(file.keys()), f"{path}: other names than its slices"
            for name, place in places.items():
                data = file.get_tensor(name)
                assert data.dtype == numpy.float32, f"{name} is {data.dtype}"
                key = (place["tensor"], place["part"])
                state.setdefault(key, numpy.zeros(shapes[place["tensor"]], numpy.uint32))
                seen.setdefault(key, numpy.zeros(shapes[place["tensor"]], numpy.int32))
                box = tuple(slice(low, low + size) for low, size in zip(place["low"], data.shape))
                state[key][box] = data.view(numpy.uint32)
                seen[key][box] += 1
    for key, count in seen.items():
        assert (count == 1).all(), f"{key}: some elements are not written once"
    assert len(state) == 3 * len(shapes), "not all parts of all tensors are there"
    return state


def two_plans_write_the_same_state():
    with tempfile.TemporaryDirectory() as folder:
        states = []
        for seed in "12":
            path = pathlib.Path(folder) / seed
            subprocess.run([write_checkpoint, path, seed], check=True)
            states.append(whole_state(path))
        for key, bits in states[0].items():
            assert (bits == states[1][key]).all(), f"{key} differs"


sys.exit(tap.run([two_plans_write_the_same_state]))
