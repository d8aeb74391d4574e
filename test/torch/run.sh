#!/bin/sh
# The hook on a real torch. Uses a Python that has one, else installs Debian's when root, else says why it was skipped.
# RELIGHT_TORCH_PYTHON names another interpreter; further words choose tests by part of their name.
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

if ! find_python; then
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
