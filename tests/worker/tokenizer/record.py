#!/usr/bin/env python3
"""record.py - writes recorded/: what the package tokenizers gives, for machines that do not have it.

    record.py"""
import json
import pathlib

import shapes

folder = pathlib.Path(__file__).parent / "recorded"
folder.mkdir(exist_ok=True)
made = {shape: shapes.make(shape) for shape in shapes.SHAPES}
for shape, tokenizer in made.items():
    tokenizer.save(str(folder / f"{shape}.json"), pretty=False)
with open(folder / "texts.json", "w") as file:
    file.write("[\n" + ",\n".join(
        json.dumps({"text": text.encode().hex(), **{shape: tokenizer.encode(text, add_special_tokens=False).ids
                                                    for shape, tokenizer in made.items()}})
        for text in shapes.plain_texts()) + "\n]\n")
