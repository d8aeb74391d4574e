#!/bin/sh
# The hook on a real torch. Uses a Python that has one, else installs Debian's when root, else says why it was skipped.
# RELIGHT_TORCH_PYTHON names another interpreter; further words choose tests by part of their name. --latest makes a place of
# its own with the newest torch and safetensors and the loaders of SpecForge and speculators (some 6 GB, by pip).
cd "$(dirname "$0")/../.." || exit 1

has_torch() { "$1" -c 'import torch' 2>/dev/null; }

skip() {
	echo "torch tests skipped: $1"
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
}

find_python() {
	for python in ${RELIGHT_TORCH_PYTHON:-python3 /usr/bin/python3}; do
		has_torch "$python" && return 0
	done
	return 1
}

latest() {
	place=${RELIGHT_TORCH_PLACE:-${TMPDIR:-/tmp}/relight-torch-latest}
	python="$place/bin/python"
	[ -x "$python" ] || python3 -m venv "$place" || skip 'no venv can be made here'
	has_torch "$python" || { echo 'installing the newest torch (some minutes)'; "$python" -m pip install -q torch safetensors numpy >/dev/null 2>&1; }
	has_torch "$python" || skip 'the newest torch could not be installed'
	# Without what they pin: the torch that is there is the one to be proved.
	for wanted in 'hs-connectors speculators specforge' 'datasets openai loguru pydantic pydantic-settings transformers'; do
		flags=; [ "${wanted#hs-}" = "$wanted" ] || flags=--no-deps
		"$python" -m pip install -q $flags $wanted >/dev/null 2>&1 || echo "not installed: $wanted"
	done
}

if [ "$1" = --latest ]; then
	shift
	latest
elif ! find_python; then
	[ -z "$RELIGHT_TORCH_PYTHON" ] || skip "$RELIGHT_TORCH_PYTHON has no torch"
	command -v apt-get >/dev/null || skip 'no Python here has torch, and there is no apt-get to install it with'
	[ "$(id -u)" = 0 ] || skip 'no Python here has torch, and only root may install python3-torch'
	echo 'installing python3-torch (a few minutes)'
	log=$(mktemp)
	{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-torch; } >"$log" 2>&1
	find_python || skip "python3-torch could not be installed: $(tail -n 1 "$log")"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
RELIGHT_WRITER="$work/writer.mjs"
PYTHONDONTWRITEBYTECODE=1
export RELIGHT_WRITER PYTHONDONTWRITEBYTECODE
node_modules/.bin/esbuild test/torch/writer.ts --bundle --platform=node --format=esm --log-level=error --outfile="$RELIGHT_WRITER" || exit 1
"$python" -c 'import sys, torch; print("torch", torch.__version__, "on Python", sys.version.split()[0])'
"$python" test/torch/test_hook.py "$@"
