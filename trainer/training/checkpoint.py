"""Weights and states on disk: safetensors and JSON only, never pickle, and never half a file.

A checkpoint is one file: tensors, and in the header a JSON object and the hash of both. It appears under its name
only when it is complete: written aside, flushed to the disk, renamed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, bfloat16, float16, float32, float64, nn, uint8
from torch.optim import Optimizer

from trainer.core.errors import BadData, Failed
from trainer.data.contract import MAX_JSON, parse_object
from trainer.data.dataset import one_line

ENTRY, STATE, HASH = "trainer", "state", "sha256"
MODEL, OPTIMIZER = "model.", "optimizer."
MOMENTS = {"step", "exp_avg", "exp_avg_sq"}  # what AdamW keeps of a parameter
PRECISIONS = {float16, bfloat16, float32, float64}


def write(path: Path, content: bytes) -> None:
    """Replace a file in one move, so that a reader sees the old content or the new, whatever happens."""
    aside = path.with_name(f".{path.name}.aside")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise Failed(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        aside.unlink(missing_ok=True)  # half of it would only fill a full disk


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(path: Path, value: Mapping[str, Any], indent: int | None = 1) -> None:
    """An object as readable JSON, or without an indent as a short line."""
    write(path, (json.dumps(value, indent=indent, ensure_ascii=False) + "\n").encode())


def save_checkpoint(path: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Tensors and a small state as one file, the same bytes for the same content."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(state)
    about = json.dumps({STATE: text, HASH: fingerprint(plain, text)})
    write(path, save(plain, metadata={ENTRY: about}))  # one entry: safetensors writes several in any order


def fingerprint(tensors: Mapping[str, Tensor], state: str) -> str:
    """The SHA-256 of all that a checkpoint says: one flipped bit of a weight is a weight as good as any other."""
    found = hashlib.sha256(state.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        found.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        found.update(tensor.reshape(-1).view(uint8).numpy().data)
    return found.hexdigest()


def read_checked(path: Path, most: int | None) -> bytes:
    """The bytes of a checkpoint, if they are as many as its header says, and no more than ``most`` of tensors."""
    if path.exists() and not path.is_file():
        raise BadData(f"{path}: not a file")
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if length > MAX_JSON:
            raise BadData(f"{path}: not a checkpoint: a header of {length:,} bytes")
        header = file.read(length)
        entries = parse_object(header, f"{path}: not a checkpoint").values()
        said = [entry.get("data_offsets") for entry in entries if isinstance(entry, dict)]
        ends = [pair[1] for pair in said if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], int)]
        wanted = max(ends, default=0)
        if size != 8 + length + wanted:
            raise BadData(f"{path}: not a checkpoint: {size:,} bytes, its header says {8 + length + wanted:,}")
        if most is not None and wanted > most:
            raise BadData(f"{path}: {wanted:,} bytes of weights, the config needs at most {most:,}")
        return start + header + file.read(wanted)


def load_checkpoint(path: Path, most: int | None = None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What :func:`save_checkpoint` wrote; with ``most`` nothing that has more bytes of tensors."""
    try:
        content = read_checked(path, most)  # not mapped: a file that changes meanwhile must not crash the process
        tensors = load(content)
    except FileNotFoundError as error:
        raise BadData(f"{path}: missing") from error
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise BadData(f"{path}: not a checkpoint: {one_line(error)}") from error
    size = int.from_bytes(content[:8], "little")
    header = parse_object(content[8 : 8 + size], str(path)).get("__metadata__")
    about = parse_object(header.get(ENTRY, "{}") if isinstance(header, dict) else "{}", str(path))
    state = about.get(STATE)
    if not isinstance(state, str):
        raise BadData(f"{path}: not a checkpoint of this version: it has no state with a hash")
    if about.get(HASH) != fingerprint(tensors, state):
        raise BadData(f"{path}: altered: its content is not what its SHA-256 says")
    return tensors, parse_object(state, str(path))


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
        found = tuple(tensors[name].shape) if name in tensors else "nothing"
        needed = tuple(own[name].shape) if name in own else "nothing"
        if found != needed:
            raise BadData(f"{where}: {name[:60]} is {found}, the config needs {needed}: of another model or dataset")
        if tensors[name].dtype not in PRECISIONS and tensors[name].dtype != own[name].dtype:
            raise BadData(f"{where}: {name[:60]} holds {tensors[name].dtype}, which are no weights")
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
        if name not in parameters or key not in MOMENTS or not is_moment(key, tensor, parameters[name]):
            raise BadData(f"{where}: {full[:60]} does not belong to this optimizer")
        home = tensor if key == "step" else tensor.to(parameters[name].device)
        optimizer.state[parameters[name]][key] = home.clone()
        found.setdefault(name, set()).add(key)
    for name, keys in found.items():  # a parameter without any was not updated yet
        if missing := MOMENTS - keys:
            raise BadData(f"{where}: of the optimizer's {name[:60]} there is no {min(missing)}")


def is_moment(key: str, tensor: Tensor, parameter: Tensor) -> bool:
    """Whether AdamW can go on with a tensor of its state: a count from 1 on, or a mean for each weight."""
    if key == "step":
        return tensor.shape == () and tensor.dtype == float32 and 1 <= float(tensor) < inf
    return tensor.shape == parameter.shape and tensor.dtype == parameter.dtype
