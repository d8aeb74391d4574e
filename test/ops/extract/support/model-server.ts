import {mkdirSync, writeFileSync} from 'node:fs';
import {createServer, type Server} from 'node:http';
import type {AddressInfo} from 'node:net';
import {bareTensor, HIDDEN_SIZE} from '../../../../src/ops/drill/build-data.ts';
import {tensor} from '../../../../src/ops/tensor/pickle.ts';
import {planTorchFile, torchFile} from '../../../../src/ops/tensor/torch-file.ts';

/** How the next answers go wrong; taken off the front, one a request. Without one the answer is right. */
export type Fault =
	| 'no dump'
	| 'a row short'
	| 'cached tokens'
	| 'other rid'
	| 'not finite'
	| 'two dumps'
	| 'a stranger too'
	| 'busy'
	| 'too long'
	| 'hang up';

export type ModelServer = {
	readonly port: number;
	readonly faults: Fault[];
	readonly rids: string[];
	close(): Promise<void>;
};

function withNan(rows: number): Buffer {
	const data = Buffer.alloc(rows * HIDDEN_SIZE * 2, 0x3f);
	data.writeUInt16LE(0x7fc0, 2 * HIDDEN_SIZE);
	return Buffer.concat(torchFile(planTorchFile('final', tensor('BF16', [rows, HIDDEN_SIZE])), [data]));
}

const FILES = ['aux_0', 'aux_1', 'aux_2', 'final'];

/** A patched server in a few lines: counts, dumps, answers, and goes wrong when asked to. */
export async function modelServer(dumpDir: string, port = 0): Promise<ModelServer> {
	const faults: Fault[] = [];
	const rids: string[] = [];
	let counter = 0;
	const dump = (ids: readonly number[]): string => {
		const directory = `${dumpDir}/req_${++counter}`;
		mkdirSync(directory, {recursive: true});
		for (const [layer, name] of FILES.entries()) writeFileSync(`${directory}/${name}.pt`, bareTensor(name, ids, layer));
		writeFileSync(`${directory}/done`, '');
		return directory;
	};
	const server: Server = createServer((request, response) => {
		const pieces: Buffer[] = [];
		request.on('data', piece => pieces.push(piece));
		request.on('end', () => {
			const reply = (status: number, body: unknown): void => {
				response.writeHead(status, {'content-type': 'application/json'});
				response.end(JSON.stringify(body));
			};
			if (request.url !== '/generate') return reply(200, {});
			const {input_ids: ids, rid}: {input_ids: number[]; rid: string} = JSON.parse(Buffer.concat(pieces).toString());
			rids.push(rid);
			const fault = faults.shift();
			if (fault === 'hang up') return request.socket.destroy();
			if (fault === 'busy') return reply(503, {});
			if (fault === 'too long')
				return reply(400, {error: {message: `The input (${ids.length} tokens) is longer than the limit`}});
			if (fault !== 'no dump') {
				const made = dump(fault === 'a row short' ? ids.slice(1) : ids);
				if (fault === 'two dumps') dump(ids);
				if (fault === 'a stranger too') dump([0]);
				if (fault === 'not finite') writeFileSync(`${made}/final.pt`, withNan(ids.length));
			}
			reply(200, {
				meta_info: {
					id: fault === 'other rid' ? 'somebody-else' : rid,
					prompt_tokens: ids.length,
					completion_tokens: 1,
					cached_tokens: fault === 'cached tokens' ? 2 : 0,
				},
			});
		});
	});
	await new Promise<void>(resolve => server.listen(port, '127.0.0.1', () => resolve()));
	return {
		port: (server.address() as AddressInfo).port,
		faults,
		rids,
		close: () =>
			new Promise(resolve => {
				server.closeAllConnections();
				server.close(() => resolve());
			}),
	};
}
