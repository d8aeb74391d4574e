/** What the stand-in server makes of its command line. */
export type ServerArguments = {
	readonly values: Readonly<Record<string, string>>;
	readonly modelPath: string;
	readonly port: number;
	readonly host: string;
	readonly tensorParallel: number;
};

const VALUES: Readonly<Record<string, string>> = {
	'--model-path': 'model_path',
	'--model': 'model_path',
	'--tokenizer-path': 'tokenizer_path',
	'--host': 'host',
	'--port': 'port',
	'--tp-size': 'tp_size',
	'--tensor-parallel-size': 'tp_size',
	'--tp': 'tp_size',
	'--mem-fraction-static': 'mem_fraction_static',
	'--log-level': 'log_level',
	'--log-level-http': 'log_level_http',
	'--context-length': 'context_length',
	'--chunked-prefill-size': 'chunked_prefill_size',
	'--max-prefill-tokens': 'max_prefill_tokens',
	'--max-running-requests': 'max_running_requests',
	'--watchdog-timeout': 'watchdog_timeout',
	'--forward-hooks': 'forward_hooks',
	'--dtype': 'dtype',
	'--served-model-name': 'served_model_name',
	'--crash-dump-folder': 'crash_dump_folder',
	'--api-key': 'api_key',
};

const SWITCHES: Readonly<Record<string, string>> = {
	'--trust-remote-code': 'trust_remote_code',
	'--disable-cuda-graph': 'disable_cuda_graph',
	'--disable-piecewise-cuda-graph': 'disable_piecewise_cuda_graph',
	'--disable-radix-cache': 'disable_radix_cache',
	'--disable-custom-all-reduce': 'disable_custom_all_reduce',
	'--disable-overlap-schedule': 'disable_overlap_schedule',
	'--enforce-disable-flashinfer-allreduce-fusion': 'enforce_disable_flashinfer_allreduce_fusion',
	'--enable-metrics': 'enable_metrics',
	'--skip-server-warmup': 'skip_server_warmup',
	'--enable-return-hidden-states': 'enable_return_hidden_states',
};

/** What `--help` prints, as argparse lays it out. */
export const helpText = (): string =>
	[
		'usage: launch_server.py [-h] --model-path MODEL_PATH [options]\n\noptions:',
		'  -h, --help            show this help message and exit',
		...Object.entries(VALUES).map(([flag, name]) => `  ${flag} ${name.toUpperCase()}`),
		...Object.keys(SWITCHES).map(flag => `  ${flag}`),
		'',
	].join('\n');

/** As argparse would: the parsed line, or what it prints to stderr before it exits with 2. */
export function parseServerArguments(argv: readonly string[]): ServerArguments | {readonly error: string} {
	const values: Record<string, string> = {
		host: '127.0.0.1',
		port: '30000',
		tp_size: '1',
		mem_fraction_static: '0.83',
		chunked_prefill_size: '8192',
		max_prefill_tokens: '16384',
		log_level: 'info',
	};
	const strange: string[] = [];
	for (let at = 0; at < argv.length; at++) {
		const word = argv[at] ?? '';
		const [flag = '', inline] =
			word.startsWith('--') && word.includes('=')
				? [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]
				: [word];
		const name = VALUES[flag];
		const isSwitch = SWITCHES[flag];
		if (isSwitch !== undefined && inline === undefined) values[isSwitch] = 'True';
		else if (name !== undefined) {
			const value = inline ?? argv[++at];
			if (value === undefined) return {error: usage(`argument ${flag}: expected one argument`)};
			values[name] = value;
		} else strange.push(word);
	}
	if (values.model_path === undefined) return {error: usage('the following arguments are required: --model-path')};
	if (strange.length > 0) return {error: usage(`unrecognized arguments: ${strange.join(' ')}`)};
	for (const name of ['port', 'tp_size']) {
		if (!/^\d+$/.test(values[name] ?? ''))
			return {error: usage(`argument --${name.replace('_', '-')}: invalid int value: '${values[name]}'`)};
	}
	return {
		values,
		modelPath: values.model_path,
		host: values.host ?? '',
		port: Number(values.port),
		tensorParallel: Number(values.tp_size),
	};
}

const usage = (error: string): string =>
	`usage: launch_server.py [-h] --model-path MODEL_PATH [--tokenizer-path TOKENIZER_PATH]\n                        [--host HOST] [--port PORT] [--tp-size TP_SIZE]\nlaunch_server.py: error: ${error}\n`;

/** `ServerArgs(model_path='…', …)` as the first log line shows it. */
export const showArguments = ({values}: ServerArguments): string =>
	`ServerArgs(${Object.entries(values)
		.map(([name, value]) => `${name}=${/^(True|False|-?[\d.]+)$/.test(value) ? value : `'${value}'`}`)
		.join(', ')})`;
