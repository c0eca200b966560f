"""The content hash of a dataset: what lineage refers to, and what a store checks itself against."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

CHUNK_BYTES = 16 * 2**20


def digest_columns(columns: Mapping[str, np.ndarray]) -> str:
    """SHA-256 over names, little-endian types, shapes and bytes, in the order of the names.

    Read in chunks, so that a memory-mapped column larger than memory can be hashed.
    """
    outer = hashlib.sha256()
    for name in sorted(columns):
        column = columns[name]
        little = column.dtype.newbyteorder("<")
        outer.update(f"{name}|{little.str}|{column.shape}|".encode())
        rows_per_chunk = max(1, CHUNK_BYTES // max(1, column.nbytes // max(1, len(column))))
        for start in range(0, len(column), rows_per_chunk):
            chunk = np.ascontiguousarray(column[start : start + rows_per_chunk], dtype=little)
            outer.update(chunk.data)
    return outer.hexdigest()
