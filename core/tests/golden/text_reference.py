"""Token ids by Python's sentencepiece, to check the Rust tokenizer: for a tiny model trained here, and for 1,000 captions of MS-COCO.

    python3 -m pip install sentencepiece==0.2.3
    python3 core/tests/golden/text_reference.py coco-train-captions.tsv t5-32k.spm.model c4-32768.spm.model

writes `tiny.spm.model` and `text.json` beside this file. The captions (annotations of MS-COCO 2017, CC BY 4.0) are every 26th of the
table, whose lines are `image_id<TAB>caption`. The two large models are T5's (32,000 pieces) and MaxText's for C4 (32,768); they are not
in the repository, so that the test needs to find them.
"""

import io
import json
import pathlib
import random
import sys

import sentencepiece as spm

FOLDER = pathlib.Path(__file__).parent

# What is written in place of what: a letter of another width, an apostrophe, a fraction, a letter and its accent, nothing for a hyphen
# that is not shown, and a space for a tab.
RULES = ["FF21\t41", "2019\t27", "BD\t31 2044 32", "65 301\tE9", "AD\t", "9\t20", "A0\t20"]

HARD = [
    "", " ", "  a  red\tsquare  ", "A café, a cafe\u0301", "½ of a disc’s", "ＡB", "soft\u00adhyphen", "\u00ad", "犬と猫 and 犬", "▁ a▁b",
    "<pad></s><unk>", "zzzzqq", "a\u00a0b", "a\nb", "\u0000", "😀", "the the the", "Square!", "a" * 70, "eeee\u0301\u0301",
]


def sentences():
    """Sentences of a small grammar and of words put together from syllables, so that pieces of many lengths come about."""
    rng = random.Random(1)
    syllables = [a + b + c for a in "bdklmst" for b in "aeiou" for c in ["", "n", "r"]]
    colours = ["red", "green", "blue", "yellow", "purple", "orange", "white", "black"]
    kinds = ["square", "disc", "triangle", "cross", "squares", "discs", "triangles", "crosses"]
    places = ["left of", "right of", "above", "below", "beside", "at the top of", "at the bottom of", "in the middle of"]
    more = ["Two", "It's", "There isn't", "A", "The", "café", "on", "and", "with", "quickly", "jumping", "vexed", "wizards"]
    noun = lambda: f"{rng.choice(['a', 'the', 'A', 'one'])} {rng.choice(colours)} {rng.choice(kinds)}"
    for _ in range(3000):
        word = "".join(rng.choices(syllables, weights=range(len(syllables), 0, -1), k=rng.randint(1, 3)))
        yield f"{rng.choice(more)} {noun()} {rng.choice(places)} {noun()} {word} {rng.choice(more)}{rng.choice(['.', '!', ''])}"


def train():
    out = io.BytesIO()
    rules = FOLDER / "rules.tsv"
    rules.write_text("".join(rule + "\n" for rule in RULES))
    spm.SentencePieceTrainer.train(
        sentence_iterator=sentences(), model_writer=out, vocab_size=200, model_type="unigram", normalization_rule_tsv=str(rules),
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1, num_threads=1, minloglevel=2,
    )
    rules.unlink()
    return out.getvalue()


def cases(model, texts):
    return [{"text": text, "ids": model.encode(text), "decoded": model.decode(model.encode(text))} for text in texts]


def main():
    table, t5, c4 = sys.argv[1:]
    tiny = train()
    (FOLDER / "tiny.spm.model").write_bytes(tiny)
    tiny = spm.SentencePieceProcessor(model_proto=tiny)
    texts = HARD + list(sentences())[::30]
    rng = random.Random(2)
    ids = [[rng.randrange(len(tiny)) for _ in range(8)] for _ in range(100)]
    captions = [line.rstrip("\n").split("\t")[1] for line in open(table, encoding="utf-8")][1:][::26][:1000]
    models = [spm.SentencePieceProcessor(model_file=path) for path in (t5, c4)]
    out = {
        "pieces": [tiny.id_to_piece(i) for i in range(len(tiny))],
        "tiny": cases(tiny, texts),
        "random": [{"ids": some, "decoded": tiny.decode(some)} for some in ids],
        "captions": [[caption, *(model.encode(caption) for model in models)] for caption in captions],
    }
    text = json.dumps(out, separators=(",", ":"), ensure_ascii=False).replace("],[\"", "],\n[\"").replace('{"text"', '\n{"text"')
    (FOLDER / "text.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
