"""Phrases with a wrong or a right article, and with the right one: ``a old egg`` becomes ``an old egg``.

python cards/examples/phrases.py > phrases.tsv
"""

from itertools import product

ADJECTIVES = [
    "old", "new", "big", "small", "red", "orange", "green", "empty", "open", "early", "late", "ugly", "nice", "odd",
    "able", "dark", "elegant", "quiet", "icy", "active",
]  # fmt: skip
NOUNS = [
    "egg", "apple", "table", "house", "island", "onion", "river", "engine", "garden", "eagle", "window", "idea",
    "letter", "office", "pencil", "animal", "bottle", "artist",
]  # fmt: skip

print("source", "target", sep="\t")
for adjective, noun in product(ADJECTIVES, NOUNS):
    right = "an" if adjective[0] in "aeiou" else "a"
    for article in ("a", "an"):
        print(f"{article} {adjective} {noun}", f"{right} {adjective} {noun}", sep="\t")
