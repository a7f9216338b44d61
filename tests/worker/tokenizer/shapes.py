"""shapes.py - tokenizers as GPT-2, LLaMA 3 and Qwen have them, trained on a little text, and texts on which
tokenizers disagree. Needs the package tokenizers."""
import random

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SHAPES = ["gpt2", "llama3", "qwen"]
DIGITS = {"llama3": r"\p{N}{1,3}", "qwen": r"\p{N}"}
ADDED = {"gpt2": ["<|endoftext|>"], "llama3": ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"],
         "qwen": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]}
WORDS = """The gimbal's rings don't turn with what they're mounted on; we'll see, and you've seen, it stays level.
for (int i = 0; i < 1024; i++) {\n\tsum += values[i] * 0x7f; /* 3.14159e+10 */\n}\n
Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Voix ambiguë d’un cœur qui préfère les jattes.
Съешь же ещё этих мягких французских булок. Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. नमस्ते दुनिया สวัสดีชาวโลก
我能吞下玻璃而不伤身体。いろはにほへと ちりぬるを。다람쥐 헌 쳇바퀴에 타고파. 👩‍🔬🏳️‍🌈🇩🇪 😀😀 ½ ² Ⅷ ①
""" + "def f(x):\n    return x\n" * 20 + "tokens and more tokens, the token of the tokens " * 20


def split(shape):
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|" + DIGITS[shape] +
               r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def make(shape, vocabulary=700, text=WORDS):
    tokenizer = Tokenizer(models.BPE(ignore_merges=shape == "llama3"))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.normalizer = normalizers.NFC() if shape == "qwen" else None
    tokenizer.pre_tokenizer = (pre_tokenizers.ByteLevel(add_prefix_space=False) if shape == "gpt2" else split(shape))
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=vocabulary, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.add_special_tokens(ADDED[shape])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    if shape == "llama3":
        first = ADDED[shape][0]
        tokenizer.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single=f"{first} $A", special_tokens=[(first, tokenizer.token_to_id(first))])])
    return tokenizer


ODD = [*" \t\n\r\v\f\x85\xa0\u180e\u2009\u2028\u3000'sStTreRElLvVmMdD019²½AbÉéſK.,!/<|>\u0301\u0323\u0300가ᄀ\u1161\u11a8"
       "😀👩\u200d漢字\0\x01\x7f\ufeff\ufffd", "<|endoftext|>", "<|end", "<|im_start|>", "<|eot_id|>", "'ll", "'RE", "    ",
       "\r\n", "e\u0301", "\u1100\u1161\u11a8"]


def odd_text(seed, length):
    draw = random.Random(seed)
    return "".join(draw.choice(ODD) for _ in range(length))


def plain_texts():
    return ["", " ", "a", "\n\n\n", "Hello, world!", WORDS, "I'LL'd we'VE 12345 1,000,000.00  \t x\n\n  y   ",
            "caf\u0065\u0301 \u212b \uac00\u11a8 q\u0323\u0307", "<|endoftext|>", "a<|endoftext|> b<|im_start|><|im_start",
            "<|begin_of_text|>x<|eot_id|>", " " * 70 + "x" + "\t" * 9, "ab" * 300, *(odd_text(seed, 90) for seed in range(12))]
