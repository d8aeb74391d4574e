#!/bin/sh
# The console in a real terminal and the recovery of the incident, on the newer Nodes that it is also for. They come as npm
# packages without install scripts; what cannot be had is named and counts as skipped. RELIGHT_NODES names other versions.
cd "$(dirname "$0")/../.." || exit 1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
system=$(node -p 'process.platform + "-" + process.arch')
passed=0
failed=0
skipped=0

try() {
	echo "Node $("$node" -v): $1"
	shift
	if "$@" >"$work/log" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		cat "$work/log"
	fi
}

for version in ${RELIGHT_NODES:-22 24}; do
	if ! npm install --silent --no-save --ignore-scripts --prefix "$work/$version" "node-$system@$version" >/dev/null 2>&1; then
		echo "Node $version: skipped, node-$system@$version could not be installed"
		skipped=$((skipped + 1))
		continue
	fi
	node="$work/$version/node_modules/node-$system/bin/node"
	try 'the console in a terminal' "$node" node_modules/vitest/vitest.mjs run test/journeys/terminal.test.ts
	try 'the recovery of the incident' "$node" dist/relight.js drill --unattended
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
