"""How agents for text read a state: words as hashed pieces and phrases, an encoder of their own or a pretrained one."""
