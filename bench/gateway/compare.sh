#!/usr/bin/env bash
# Compares the gateway with other gateways, in one run: bench/gateway/compare.sh [PART…] [OPTION…]
#
# Passes its arguments to the measurement (see README.md). Needs cargo, Python 3 with venv, Node 20 with npm and a network.
# The other gateways are installed below the build folder; one that cannot be installed or does not answer is reported and
# skipped.
set -euo pipefail

LITELLM=1.106.2
SGLANG_ROUTER=0.3.2
PORTKEY=1.15.2

# The addresses of the model server and of the other gateways.
MODEL=127.0.0.1:47310
declare -A ADDRESS=([litellm]=127.0.0.1:47311 [sglang-router]=127.0.0.1:47312 [portkey]=127.0.0.1:47313)
# How long another gateway may take to answer, in seconds. LiteLLM takes long to load.
PATIENCE=120

root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
others=$target/other-gateways
mkdir -p "$others/node"

cargo build --manifest-path "$root/Cargo.toml" --release --package plaincall-bench-gateway --package plaincall-cli
bench=$target/release/plaincall-bench-gateway

started=()
trap 'for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done' EXIT

# start NAME COMMAND…: starts one of the other gateways; its log is below the build folder.
start() {
    local name=$1
    shift
    "$@" >"$others/$name.log" 2>&1 </dev/null &
    started+=($!)
}

missing() {
    echo "!! $1 is skipped: $2" >&2
}

python=$others/python
[ -x "$python/bin/python" ] || python3 -m venv "$python"
pip=("$python/bin/pip" install --quiet --disable-pip-version-check)
declare -A installed
"${pip[@]}" "litellm[proxy]==$LITELLM" && installed[litellm]=yes || missing litellm "pip cannot install it"
"${pip[@]}" "sglang-router==$SGLANG_ROUTER" && installed[sglang-router]=yes || missing sglang-router "pip cannot install it"
npm install --silent --no-audit --no-fund --prefix "$others/node" "@portkey-ai/gateway@$PORTKEY" &&
    installed[portkey]=yes || missing portkey "npm cannot install it"

start model "$bench" serve-model "$MODEL"
if [ -n "${installed[litellm]:-}" ]; then
    cat >"$others/litellm.yaml" <<YAML
model_list:
  - model_name: m
    litellm_params: {model: openai/m, api_base: "http://$MODEL/v1", api_key: key}
YAML
    # It listens on localhost only, for a minute, so it needs no key.
    LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY=true LITELLM_LOCAL_MODEL_COST_MAP=True \
        start litellm "$python/bin/litellm" --config "$others/litellm.yaml" \
        --host "${ADDRESS[litellm]%:*}" --port "${ADDRESS[litellm]#*:}" --num_workers 1 --telemetry False
fi
if [ -n "${installed[sglang-router]:-}" ]; then
    start sglang-router "$python/bin/sglang-router" launch --worker-urls "http://$MODEL" \
        --host "${ADDRESS[sglang-router]%:*}" --port "${ADDRESS[sglang-router]#*:}" --log-level warn
fi
if [ -n "${installed[portkey]:-}" ]; then
    start portkey node "$others/node/node_modules/@portkey-ai/gateway/build/start-server.js" \
        "--port=${ADDRESS[portkey]#*:}" --headless
fi

# For Portkey, each request contains the address of the model; the others ignore these headers.
headers=("x-portkey-provider: openai" "x-portkey-custom-host: http://$MODEL/v1")
body='{"model":"m","messages":[{"role":"user","content":"Is anyone there?"}]}'
arguments=(--model "$MODEL")
for header in "${headers[@]}"; do arguments+=(--header "$header"); done
for name in litellm sglang-router portkey; do
    [ -n "${installed[$name]:-}" ] || continue
    begun=$SECONDS
    until curl --silent --fail --output /dev/null --max-time 10 -H 'content-type: application/json' \
        -H 'authorization: Bearer key' "${headers[@]/#/-H}" -d "$body" "http://${ADDRESS[$name]}/v1/chat/completions"; do
        if [ $((SECONDS - begun)) -gt $PATIENCE ]; then
            missing "$name" "it does not answer; see $others/$name.log"
            continue 2
        fi
        sleep 1
    done
    arguments+=(--beside "$name=${ADDRESS[$name]}")
done

echo "LiteLLM $LITELLM, one worker; sglang-router $SGLANG_ROUTER; Portkey $PORTKEY"
"$bench" "${arguments[@]}" "$@"
