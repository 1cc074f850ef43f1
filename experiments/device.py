"""The device of an experiment, and its name in the reports."""

import torch

from experiments.report_parts import machine
from mauc._validation import check_choice, invalid

__all__ = ["DEVICES", "check_device", "machine_with"]

DEVICES = ("auto", "cpu", "cuda")


def check_device(device: str) -> torch.device:
    """Return the device of that name."""
    check_choice("device", device, DEVICES)
    available = torch.cuda.is_available()
    if device == "cuda" and not available:
        raise invalid("device", "must be one that this machine has", "'cuda'", "pass 'cpu' or 'auto'")
    return torch.device("cuda" if available and device != "cpu" else "cpu")


def machine_with(place: str) -> str:
    """Describe the machine, with the GPU where one was used."""
    return machine(torch.cuda.get_device_name() if place == "cuda" else None)
