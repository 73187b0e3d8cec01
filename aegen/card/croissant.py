"""Croissant metadata: for catalogues, and for readers other than aegen and ``datasets``."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from aegen.card.header import PAPER_URL
from aegen.columns.schemas import SCHEMAS
from aegen.core.format import SPLITS, VERSION
from aegen.dataset.manifest import Manifest

TYPES = {pa.int64(): "cr:Int64", pa.int32(): "cr:Int32", pa.int16(): "cr:Int16", pa.string(): "sc:Text"}
LICENCES = {"mit": "https://opensource.org/licenses/MIT"}
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def croissant(manifest: Manifest, name: str, summary: str, licence: str) -> str:
    """The metadata as JSON-LD; its paths are relative to the dataset folder."""
    record = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "description": summary,
        "license": LICENCES.get(licence, licence),
        "url": PAPER_URL,
        "version": f"{VERSION}.0.0",
        "citeAs": "Shi et al. Text Editing as Imitation Game. Findings of EMNLP 2022.",
        "distribution": [_files(config) for config in manifest.configs],
        "recordSet": [_records(config) for config in manifest.configs],
    }
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def _files(config: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": f"{config}-files",
        "name": f"{config}-files",
        "encodingFormat": "application/x-parquet",
        "includes": f"{config}/*.parquet",
    }


def _records(config: str) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": config,
        "name": config,
        "field": [_split(config), *(_field(config, column) for column in SCHEMAS[config])],
    }


def _split(config: str) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"{config}/split",
        "name": "split",
        "dataType": "sc:Text",
        "source": {
            "fileSet": {"@id": f"{config}-files"},
            "extract": {"fileProperty": "filename"},
            "transform": {"regex": f"^({'|'.join(SPLITS)})-.*$"},
        },
    }


def _field(config: str, column: Any) -> dict[str, Any]:
    listed = pa.types.is_list(column.type)
    return {
        "@type": "cr:Field",
        "@id": f"{config}/{column.name}",
        "name": column.name,
        "dataType": TYPES[column.type.value_type if listed else column.type],
        **({"repeated": True} if listed else {}),
        "source": {"fileSet": {"@id": f"{config}-files"}, "extract": {"column": column.name}},
    }
