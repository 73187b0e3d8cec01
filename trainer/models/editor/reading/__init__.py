"""How agents for text read: words as hashed pieces, phrases and relatives, an encoder of their own or a pretrained one."""
