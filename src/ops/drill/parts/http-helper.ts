import {request} from 'node:http';

/** What the console's HTTP helper does; argv is METHOD URL LIMIT [BODY]. */
export async function runHttpHelper(argv: readonly string[]): Promise<number> {
	const [method = 'GET', url = '', limit = '5', body] = argv;
	const {code, text} = await ask(method, url, Number(limit) * 1_000, body);
	await new Promise<void>(resolve => process.stdout.write(text, () => resolve()));
	return code;
}

export function ask(
	method: string,
	url: string,
	limitMs: number,
	body: string | undefined,
): Promise<{code: number; text: string}> {
	return new Promise(resolve => {
		const headers = {
			'content-type': 'application/json',
			...(body === undefined ? {} : {'content-length': Buffer.byteLength(body)}),
		};
		const asked = request(url, {method, headers}, answer => {
			const pieces: Buffer[] = [];
			answer.on('data', piece => pieces.push(piece));
			answer.on('error', error => resolve({code: 7, text: `error: ${error.message}\n`}));
			answer.on('end', () => {
				clearTimeout(limit);
				resolve({code: 0, text: `${answer.statusCode}\n${Buffer.concat(pieces).toString('utf8')}`});
			});
		});
		const limit = setTimeout(() => {
			resolve({code: 7, text: 'timeout\n'});
			asked.destroy();
		}, limitMs);
		asked.on('error', (error: NodeJS.ErrnoException) => {
			clearTimeout(limit);
			resolve({code: 7, text: error.code === 'ECONNREFUSED' ? 'refused\n' : `error: ${error.message}\n`});
		});
		asked.end(body);
	});
}
