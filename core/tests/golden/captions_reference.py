"""Scores of captions by pycocoevalcap, to check the Rust ones, and the words that Stanford's tokenizer finds in them.

    python3 -m pip install pycocoevalcap==1.2       # and a Java
    python3 core/tests/golden/captions_reference.py coco-val-captions.tsv

writes `captions.json` beside this file: the five captions of 257 pictures of MS-COCO val2017 (annotations CC BY 4.0; the table's lines are
`image_id<TAB>caption`), their words, and the scores of candidates made from them:
- "held out": the fifth caption against the other four, about as good as a person;
- "shuffled": the first caption of the next picture against all five, about as bad as a person can be;
- "cut": the first five words of the fifth caption against the other four, too short everywhere.
"""

import json
import pathlib
import sys

from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer


def words(captions):
    return PTBTokenizer().tokenize({i: [{"caption": text} for text in texts] for i, texts in enumerate(captions)})


def case(name, candidates, references):
    candidates, references = words([[text] for text in candidates]), words(references)
    bleu, _ = Bleu(4).compute_score(references, candidates, verbose=0)
    cider, ciders = Cider().compute_score(references, candidates)
    rouge, rouges = Rouge().compute_score(references, candidates)
    some = lambda values: [float(value) for value in values[:8]]
    return {
        "name": name, "bleu": bleu, "cider": float(cider), "rouge": float(rouge), "ciders": some(ciders), "rouges": some(rouges),
    }


def main():
    pictures = {}
    for line in list(open(sys.argv[1], encoding="utf-8"))[1:]:
        name, caption = line.rstrip("\n").split("\t")
        pictures.setdefault(name, []).append(caption)
    captions = [texts[:5] for texts in pictures.values()]
    four, fifth = [texts[:4] for texts in captions], [texts[4] for texts in captions]
    found = words(captions)
    out = {
        "captions": captions,
        "words": [found[i] for i in range(len(captions))],
        "cases": [
            case("held out", fifth, four),
            case("shuffled", [texts[0] for texts in captions[1:] + captions[:1]], captions),
            case("cut", [" ".join(text.split()[:5]) for text in fifth], four),
        ],
    }
    text = json.dumps(out, separators=(",", ":"), ensure_ascii=False).replace("],[", "],\n[").replace('{"name"', '\n{"name"')
    pathlib.Path(__file__).with_name("captions.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
