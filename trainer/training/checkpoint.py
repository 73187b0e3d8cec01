"""Weights and states on disk: safetensors and JSON only, never pickle, never a partial file.

A checkpoint is one file: tensors, and in the header a JSON object and the hash of both. It appears under its name
only when it is complete: written under a temporary name, flushed to the disk, renamed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, bfloat16, float16, float32, float64, nn, uint8

from trainer.core.errors import BadData, one_line
from trainer.core.files import write
from trainer.core.records import MAX_BYTES, decode
from trainer.training.optimizer import Optimizer

ENTRY = "trainer"  # of the metadata: safetensors writes several in any order
MODEL, OPTIMIZER = "model.", "optimizer."
Offset = Annotated[int, Meta(ge=0)]
PRECISIONS = {float16, bfloat16, float32, float64}


class TensorEntry(Struct):
    """One entry of a safetensors header: a tensor, or the metadata, which has no offsets."""

    data_offsets: tuple[Offset, Offset] = (0, 0)


class Header(Struct):
    """A safetensors header without its tensors."""

    metadata: dict[str, str] | None = field(default=None, name="__metadata__")


class About(Struct):
    """Our entry of the metadata: the state as JSON, and the hash of it and the tensors."""

    state: str = ""
    sha256: str = ""


def save_checkpoint(path: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Write tensors and a small state as one file: the same bytes for the same content."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = msgspec.json.encode(state).decode()
    about = json.dumps({"state": text, "sha256": fingerprint(plain, text)})
    write(path, save(plain, metadata={ENTRY: about}))


def fingerprint(tensors: Mapping[str, Tensor], state: str) -> str:
    """The SHA-256 of all tensors and the state: a flipped bit of a weight cannot be noticed otherwise."""
    found = hashlib.sha256(state.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        found.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        found.update(tensor.reshape(-1).view(uint8).numpy().data)
    return found.hexdigest()


def read_checked(path: Path, most: int | None) -> bytes:
    """The bytes of a checkpoint whose size agrees with its header, with at most ``most`` bytes of tensors."""
    if path.exists() and not path.is_file():
        raise BadData(f"{path}: not a file")
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if length > MAX_BYTES:
            raise BadData(f"{path}: not a checkpoint: a header of {length:,} bytes")
        header = file.read(length)
        entries = decode(header, dict[str, TensorEntry | None], f"{path}: not a checkpoint").values()
        wanted = max((entry.data_offsets[1] for entry in entries if entry), default=0)
        if size != 8 + length + wanted:
            raise BadData(f"{path}: not a checkpoint: {size:,} bytes, expected {8 + length + wanted:,}")
        if most is not None and wanted > most:
            raise BadData(f"{path}: {wanted:,} bytes of weights, expected at most {most:,}")
        return start + header + file.read(wanted)


def load_checkpoint(path: Path, most: int | None = None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the state that :func:`save_checkpoint` wrote; with ``most`` a larger file is refused."""
    try:
        content = read_checked(path, most)  # not mapped: a file that changes meanwhile would crash the process
        tensors = load(content)
    except FileNotFoundError as error:
        raise BadData(f"{path}: missing") from error
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise BadData(f"{path}: not a checkpoint: {one_line(error)}") from error
    size = int.from_bytes(content[:8], "little")
    text = (decode(content[8 : 8 + size], Header, path).metadata or {}).get(ENTRY, "{}")
    about = decode(text, About, path)
    if not about.state:
        raise BadData(f"{path}: not a checkpoint of this version: it has no state with a hash")
    if about.sha256 != fingerprint(tensors, about.state):
        raise BadData(f"{path}: altered: the content does not match its SHA-256")
    return tensors, decode(about.state, dict[str, Any], path)


def most_bytes(model: nn.Module) -> int:
    """Bytes of weights that a checkpoint of a model may have, whatever their precision."""
    weights: Mapping[str, Tensor] = model.state_dict()
    return 2 * sum(tensor.nbytes for tensor in weights.values())


def part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors under a prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Fill a model; a checkpoint of another model or dataset is refused by name and shape."""
    own = model.state_dict()
    for name in sorted(own.keys() | tensors.keys()):
        found = tuple(tensors[name].shape) if name in tensors else "none"
        needed = tuple(own[name].shape) if name in own else "none"
        if found != needed:
            shapes = f"{name[:60]} has shape {found}, expected {needed}"
            raise BadData(f"{where}: {shapes}: weights of another model or dataset")
        if tensors[name].dtype not in PRECISIONS and tensors[name].dtype != own[name].dtype:
            raise BadData(f"{where}: {name[:60]} has type {tensors[name].dtype}, expected floating-point weights")
    model.load_state_dict(dict(tensors))


def optimizer_tensors(model: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    """The optimizer's state by parameter name."""
    return {
        f"{name}.{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def load_optimizer(model: nn.Module, optimizer: Optimizer, tensors: Mapping[str, Tensor], where: Path) -> None:
    """The inverse of :func:`optimizer_tensors`."""
    parameters = dict(model.named_parameters())
    found: dict[str, set[str]] = {}
    for full, tensor in tensors.items():
        name, _, key = full.rpartition(".")
        if (
            name not in parameters
            or key not in optimizer.moments(parameters[name])
            or not is_moment(key, tensor, parameters[name])
        ):
            raise BadData(f"{where}: {full[:60]} does not belong to this optimizer")
        home = tensor if key == "step" else tensor.to(parameters[name].device)
        optimizer.state[parameters[name]][key] = home.clone()
        found.setdefault(name, set()).add(key)
    for name, keys in found.items():  # a parameter without state has not been updated yet
        if missing := optimizer.moments(parameters[name]) - keys:
            raise BadData(f"{where}: the optimizer's state of {name[:60]} has no {min(missing)}")


def is_moment(key: str, tensor: Tensor, parameter: Tensor) -> bool:
    """Whether a tensor can be an optimizer's state of a parameter: a count >= 1, or a mean for each weight."""
    if key == "step":
        return tensor.shape == () and tensor.dtype == float32 and 1 <= float(tensor) < inf
    return tensor.shape == parameter.shape and tensor.dtype == parameter.dtype
