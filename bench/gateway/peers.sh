#!/usr/bin/env bash
# Measures the gateway beside other gateways, in one run: bench/gateway/peers.sh [PART…] [OPTION…]
#
# What it takes is passed on to the measurement (see README.md). It needs cargo, Python 3 with venv, Node 20 with npm and
# a network. The others are installed below the build folder; one that cannot be installed or does not answer is named
# and left out.
set -euo pipefail

LITELLM=1.106.2
SGLANG_ROUTER=0.3.2
PORTKEY=1.15.2

# Where the model's server and the others listen.
MODEL=127.0.0.1:47310
declare -A ADDRESS=([litellm]=127.0.0.1:47311 [sglang-router]=127.0.0.1:47312 [portkey]=127.0.0.1:47313)
# How long one of the others may take to answer, in seconds. LiteLLM reads its modules for a while.
PATIENCE=120

root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
peers=$target/peers
mkdir -p "$peers/node"

cargo build --manifest-path "$root/Cargo.toml" --release --package plaincall-bench-gateway --package plaincall-cli
bench=$target/release/plaincall-bench-gateway

started=()
trap 'for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done' EXIT

# start NAME COMMAND…: begins one of the others; its log is below the build folder.
start() {
    local name=$1
    shift
    "$@" >"$peers/$name.log" 2>&1 </dev/null &
    started+=($!)
}

missing() {
    echo "!! $1 is left out: $2" >&2
}

python=$peers/python
[ -x "$python/bin/python" ] || python3 -m venv "$python"
pip=("$python/bin/pip" install --quiet --disable-pip-version-check)
declare -A installed
"${pip[@]}" "litellm[proxy]==$LITELLM" && installed[litellm]=yes || missing litellm "pip cannot install it"
"${pip[@]}" "sglang-router==$SGLANG_ROUTER" && installed[sglang-router]=yes || missing sglang-router "pip cannot install it"
npm install --silent --no-audit --no-fund --prefix "$peers/node" "@portkey-ai/gateway@$PORTKEY" &&
    installed[portkey]=yes || missing portkey "npm cannot install it"

start model "$bench" serve-model "$MODEL"
if [ -n "${installed[litellm]:-}" ]; then
    cat >"$peers/litellm.yaml" <<YAML
model_list:
  - model_name: m
    litellm_params: {model: openai/m, api_base: "http://$MODEL/v1", api_key: key}
YAML
    # It listens on this machine alone, for a minute, so it needs no key of its own.
    LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY=true LITELLM_LOCAL_MODEL_COST_MAP=True \
        start litellm "$python/bin/litellm" --config "$peers/litellm.yaml" \
        --host "${ADDRESS[litellm]%:*}" --port "${ADDRESS[litellm]#*:}" --num_workers 1 --telemetry False
fi
if [ -n "${installed[sglang-router]:-}" ]; then
    start sglang-router "$python/bin/sglang-router" launch --worker-urls "http://$MODEL" \
        --host "${ADDRESS[sglang-router]%:*}" --port "${ADDRESS[sglang-router]#*:}" --log-level warn
fi
if [ -n "${installed[portkey]:-}" ]; then
    start portkey node "$peers/node/node_modules/@portkey-ai/gateway/build/start-server.js" \
        "--port=${ADDRESS[portkey]#*:}" --headless
fi

# Portkey is told by each request where the model is; the others pass over these headers.
headers=("x-portkey-provider: openai" "x-portkey-custom-host: http://$MODEL/v1")
body='{"model":"m","messages":[{"role":"user","content":"Is anybody there?"}]}'
arguments=(--model "$MODEL")
for header in "${headers[@]}"; do arguments+=(--header "$header"); done
for name in litellm sglang-router portkey; do
    [ -n "${installed[$name]:-}" ] || continue
    begun=$SECONDS
    until curl --silent --fail --output /dev/null --max-time 10 -H 'content-type: application/json' \
        -H 'authorization: Bearer key' "${headers[@]/#/-H}" -d "$body" "http://${ADDRESS[$name]}/v1/chat/completions"; do
        if [ $((SECONDS - begun)) -gt $PATIENCE ]; then
            missing "$name" "it does not answer; see $peers/$name.log"
            continue 2
        fi
        sleep 1
    done
    arguments+=(--beside "$name=${ADDRESS[$name]}")
done

echo "LiteLLM $LITELLM, one worker; sglang-router $SGLANG_ROUTER; Portkey $PORTKEY"
"$bench" "${arguments[@]}" "$@"
