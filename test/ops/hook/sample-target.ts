import {LOCAL_TARGET} from '../../../src/ops/config/config.ts';
import type {HookFacts} from '../../../src/ops/hook/look.ts';
import type {ServerConfig, Target} from '../../../src/ops/target.ts';

export const OWN = 'a'.repeat(64);
export const OTHER = 'b'.repeat(64);
export const DUMPS = '/dev/shm/sglang_hs';

/** The incident's host, as far as a hook is concerned. */
export function targetWith(server: Partial<ServerConfig> = {}, more: Partial<Target> = {}): Target {
	return {
		...LOCAL_TARGET,
		name: 'ct129',
		dump: {dir: DUMPS, limitBytes: null},
		server: {
			python: '/root/ml-env/bin/python3',
			tree: '/root/sglang',
			model: '/shared/kimi-k2.5-int4',
			port: 8000,
			env: {},
			args: [],
			log: '/data/logs',
			name: 'relight-server',
			phaseLimitMs: 1,
			...server,
		},
		...more,
	};
}

const SITE = '/root/ml-env/lib/python3.12/site-packages/sglang';

/** An unpatched SGLang without the hook. */
export const BARE: HookFacts = {
	python: '3.12.3',
	sglang: {
		directory: SITE,
		version: '0.5.12',
		source: {path: `${SITE}/srt/models/deepseek_v2.py`, sha256: OTHER, marked: false},
		bytecode: {path: `${SITE}/srt/models/__pycache__/deepseek_v2.cpython-312.pyc`, state: 'fits', marked: false},
		flags: null,
		hooks: true,
	},
	tree: null,
	hook: {importable: null, placed: null},
	model: {architecture: 'KimiK25ForConditionalGeneration', layers: 61, hiddenSize: 7168},
	status: null,
};

export const withPackage = (change: Partial<NonNullable<HookFacts['sglang']>>): HookFacts => ({
	...BARE,
	sglang: BARE.sglang && {...BARE.sglang, ...change},
});
