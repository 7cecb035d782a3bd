"""The program of the child process: an OpenAI-compatible server for a GGUF file, on the loopback address.

It reads what to serve from one line of JSON on its standard input, answers with one line that holds the
address, and ends when its standard input does: whatever becomes of the parent, no server is left behind.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from importlib import import_module
from typing import Any


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to make something of
    order: dict[str, Any] = json.loads(sys.stdin.readline())
    if order.get("devices"):
        sys.stdout.write(json.dumps({"devices": _gpus()}) + "\n")
        sys.stdout.flush()
        os._exit(0)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that wait must not burn a shared machine
    try:
        server = _serve(order)
        answer = {"address": str(server.listening_address)}
    except Exception as error:  # whatever llama.cpp has against the file
        server, answer = None, {"error": str(error) or type(error).__name__}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    if server is not None:
        sys.stdin.read()
    os._exit(0)  # its threads may be in the middle of a reply that nobody wants


def _gpus() -> list[dict[str, Any]]:
    """What llama.cpp would compute on, other than the processor."""
    llama = import_module("xllamacpp")
    processor = llama.ggml_backend_dev_type.GGML_BACKEND_DEVICE_TYPE_CPU
    return [
        {"name": str(one["description"]), "memory": int(one["memory_total"])}
        for one in llama.get_device_info()
        if one["type"] != processor and one["memory_total"]
    ]


def _serve(order: dict[str, Any]) -> Any:
    llama = import_module("xllamacpp")
    params = llama.CommonParams()
    params.model.path = order["file"]
    params.n_ctx = order["context"]
    params.n_parallel = order["slots"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [order["key"]]
    params.ui = False
    params.use_jinja = True  # a model's own template, and with it its own calls
    params.verbosity = 0
    params.cache_ram_mib = 0  # what one adapter's prompt left there would be taken for another's
    if order["adapter"]:
        params.lora_adapters = [llama.CommonAdapterLoraInfo(order["adapter"], 1.0)]
    if order["states"]:
        params.slot_save_path = order["states"]
        params.endpoint_slots = True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = order["threads"]
    return llama.Server(params)


if __name__ == "__main__":
    main()
