import {show} from '../command.ts';
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
