import {quote, show} from '../command.ts';
import type {ServerConfig} from '../target.ts';

/**
 * HTTP on the host's own loopback, by the server's Python (standard library only, script on stdin). Prints the status
 * code on the first line and the body after it; exit 7 with `refused`, `timeout` or `error: …` when nothing answered.
 */
const HELPER = `# relight-http 1
import sys, socket, urllib.error, urllib.request
method, url, limit = sys.argv[1], sys.argv[2], float(sys.argv[3])
body = sys.argv[4].encode() if len(sys.argv) > 4 else None
ask = urllib.request.Request(url, data=body, method=method, headers={"Content-Type": "application/json"})
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    with opener.open(ask, timeout=limit) as answer:
        print(answer.status)
        sys.stdout.write(answer.read(1048576).decode("utf-8", "replace"))
except urllib.error.HTTPError as error:
    print(error.code)
    sys.stdout.write(error.read(65536).decode("utf-8", "replace"))
except (socket.timeout, TimeoutError):
    print("timeout")
    sys.exit(7)
except OSError as error:
    reason = getattr(error, "reason", error)
    print("refused" if isinstance(reason, ConnectionRefusedError) else "timeout" if isinstance(reason, (socket.timeout, TimeoutError)) else "error: %s" % reason)
    sys.exit(7)
`;

/** One request as a script for a lane. `limitSeconds` bounds the socket; the process gets two more. */
export function httpScript(
	server: ServerConfig,
	method: 'GET' | 'POST',
	path: string,
	limitSeconds: number,
	body?: string,
): string {
	const url = `http://127.0.0.1:${server.port}${path}`;
	const words = [server.python, '-', method, url, String(limitSeconds), ...(body === undefined ? [] : [body])];
	return `timeout -k 1 ${limitSeconds + 2} ${show(words)} <<'RELIGHT'\n${HELPER}RELIGHT`;
}

/**
 * A real request that must produce a complete dump: `tokens` ids, one new token, then the new request directory must show
 * four tensors of at least the bytes that many rows have, and the done marker. The canary's own dump is moved aside.
 */
export function canaryScript(server: ServerConfig, dumpDir: string, hiddenSize: number, id: string): string {
	const tokens = 8;
	const ids = Array.from({length: tokens}, (_, index) => index + 1);
	const body = JSON.stringify({
		input_ids: ids,
		sampling_params: {max_new_tokens: 1, temperature: 0},
		rid: `relight-canary-${id}`,
		stream: false,
	});
	const bytes = tokens * hiddenSize * 2;
	const aside = `${dumpDir}/.quarantine/canary-${id}`;
	return [
		`cd ${quote(dumpDir)} && mkdir -p ${quote(aside)} || exit 1`,
		`for d in req_*; do [ ! -d "$d" ] || mv -- "$d" ${quote(`${aside}/`)}; done`,
		`a=$(${httpScript(server, 'POST', '/generate', 60, body)}\n) || { echo "no answer to a real request: $a"; exit 1; }`,
		'case $a in 200*) ;; *) echo "a real request was refused: $a" | head -c 300; exit 1;; esac',
		'n=0; while [ $n -lt 40 ]; do n=$((n+1)); for d in req_*; do',
		`  g=0; for f in "$d"/*.pt; do [ -f "$f" ] && [ "$(stat -c %s "$f")" -ge ${bytes} ] && g=$((g+1)); done`,
		`  [ $g -ge 4 ] && [ -e "$d/done" ] && { mv -- "$d" ${quote(`${aside}/`)}; echo "complete dump: $g tensors of ${tokens} rows"; exit 0; }`,
		'done; sleep 0.25; done',
		'echo "the server answered, but no complete dump appeared: is the patch active in the package that was imported?"; exit 1',
	].join('\n');
}
