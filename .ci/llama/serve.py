"""serve.py MODEL [TEMPLATE]: llama.cpp's own HTTP server on a free port of this machine, until stdin ends.

The first line on stdout is its address; its log goes to stderr. TEMPLATE is a file with the chat template
to use instead of the model's own.
"""

import sys

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.model_alias = {"made-here"}
if len(sys.argv) > 2:
    with open(sys.argv[2], encoding="utf-8") as template:
        params.chat_template = template.read()
params.use_jinja = True
params.hostnames = ["127.0.0.1"]
params.port = 0
params.ui = False
params.n_ctx = 16384
params.n_parallel = 1
params.warmup = False
# Threads of the engine spin while they wait for each other: on a busy machine one is faster than two.
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1

server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
