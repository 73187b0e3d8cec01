"""How agents for text read: words as hashed pieces, phrases and relatives, their own encoder or a pretrained one."""
