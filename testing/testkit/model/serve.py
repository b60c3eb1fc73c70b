"""llama.cpp's own server with a model, both from PyPI: `python serve.py MODEL.gguf`. Prints its address, and serves until its
standard input closes."""

from __future__ import annotations

import sys

import xllamacpp


def main() -> None:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = sys.argv[1]
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    parameters.n_ctx, parameters.n_parallel, parameters.use_jinja = 8192, 1, True
    parameters.cpuparams.n_threads = 2
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


main()
