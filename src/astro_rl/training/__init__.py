"""Compiled training: batches drawn on the device or streamed from disk, updates scanned, seeds side by side."""

from astro_rl.training.batches import DeviceData, device_bytes, device_data, draw_batch, mixture_counts
from astro_rl.training.loop import init_states, replicate, seed_keys, spread_over_devices, train_chunk
from astro_rl.training.stream import StreamData, train_chunk_streamed

__all__ = [
    "DeviceData",
    "StreamData",
    "device_bytes",
    "device_data",
    "draw_batch",
    "init_states",
    "mixture_counts",
    "replicate",
    "seed_keys",
    "spread_over_devices",
    "train_chunk",
    "train_chunk_streamed",
]
