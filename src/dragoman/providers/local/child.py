"""Run as the child process: an OpenAI-compatible server for a GGUF file, on the loopback address.

It reads what to serve from one line of JSON on its standard input, and answers with one line that has the
address. It ends when its standard input is closed, so no server is left behind if the parent dies.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from importlib import import_module
from typing import Any


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent handles Ctrl-C.
    order: dict[str, Any] = json.loads(sys.stdin.readline())
    if order.get("devices"):
        sys.stdout.write(json.dumps({"devices": _gpus()}) + "\n")
        sys.stdout.flush()
        os._exit(0)
    # Waiting threads must not use CPU time on a shared machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        server = _serve(order)
        answer = {"address": str(server.listening_address)}
    except Exception as error:  # any error of llama.cpp with the file
        server, answer = None, {"error": str(error) or type(error).__name__}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    if server is not None:
        sys.stdin.read()
    os._exit(0)  # Its threads may be in the middle of a reply that is no longer needed.


def _gpus() -> list[dict[str, Any]]:
    """Return the devices other than the CPU that llama.cpp can use."""
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
    params.use_jinja = True  # the model's own template, with its own call format
    params.verbosity = 0
    params.cache_ram_mib = 0  # Otherwise one adapter's prompt cache would be used for another.
    if order["adapter"]:
        params.lora_adapters = [llama.CommonAdapterLoraInfo(order["adapter"], 1.0)]
    if order["states"]:
        params.slot_save_path = order["states"]
        params.endpoint_slots = True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = order["threads"]
    return llama.Server(params)


if __name__ == "__main__":
    main()
