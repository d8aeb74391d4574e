/** How a model server says that it failed: a class, what its line looks like, and the next step. */
export type Signature = {readonly class: string; readonly pattern: RegExp; readonly advice: string};

/**
 * Order is rank: where several match, the first class of this list is the cause and the rest its echo. Patterns are those of
 * SGLang 0.5.6 to 0.5.18; source: extraction-domain 3.5, fixtures/sglang.
 */
export const SIGNATURES: readonly Signature[] = [
	{
		class: 'GPU squatter',
		pattern: /The memory capacity is unbalanced\. Some GPUs may be occupied/,
		advice: 'another process holds GPU memory: stop its unit, then launch again',
	},
	{
		class: 'CUDA out of memory',
		pattern: /CUDA out of memory|torch\.(cuda\.)?OutOfMemoryError/,
		advice: 'look who else holds the GPUs; else lower --mem-fraction-static',
	},
	{
		class: 'KV pool too small',
		pattern: /Not enough memory\. Please try to increase --mem-fraction-static/,
		advice: 'raise --mem-fraction-static or free the GPUs',
	},
	{
		class: 'port taken',
		pattern: /address already in use|\[Errno 98\]|is not available in \d+ seconds|is used by a process already/i,
		advice: 'see who listens on the port; end that one or choose another port',
	},
	{
		class: 'weights damaged',
		pattern:
			/Cannot find any model weights with|incomplete download|SafetensorError|header too (large|small)|MetadataIncompleteBuffer/i,
		advice: 'compare the shards with the index, and their headers; fetch what is missing or cut off',
	},
	{
		class: 'remote code not trusted',
		pattern: /(Error|Exception)\b.*trust[_-]remote[_-]code/,
		advice: 'add --trust-remote-code',
	},
	{
		class: 'context too long',
		pattern: /context_length \(\d+\) is greater than the derived/,
		advice: 'lower --context-length, or set SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1',
	},
	{
		class: 'unknown flag',
		pattern: /error: (unrecognized arguments|argument )/,
		advice: 'the installed version has other flags: compare with `--help`',
	},
	{
		class: 'no space in /dev/shm',
		pattern: /Fatal Python error: Bus error|initialization \(exit code: -7\)|No space left on device.*shm/,
		advice: 'free /dev/shm (left-overs of dead servers) or enlarge it',
	},
	{
		class: 'illegal access or Xid',
		pattern: /illegal memory access|NVRM: Xid|requires reset/,
		advice: 'stop; read the kernel log for the Xid; the card may need a reset',
	},
	{
		class: 'NCCL',
		pattern:
			/NCCL error|nccl(Unhandled|System|Internal)\w*Error|Watchdog caught collective operation timeout|ProcessGroupNCCL.*(error|abort|terminat)/i,
		advice: 'end the whole process group; keep the log; look for a card or link that fell off',
	},
	{
		class: 'killed at start',
		pattern: /Rank \d+ scheduler died during initialization \(exit code: -?\d+\)/,
		advice: 'exit code -9 is the out-of-memory killer: read the kernel log',
	},
	{
		class: 'process crashed',
		pattern: /Subprocess \S+ \(pid=\d+\) crashed with exit code -?\d+/,
		advice: 'stop the rest of the group and launch again; the cause is above in the log',
	},
	{
		class: 'hook inactive',
		pattern:
			/No modules matched hook spec|has no 'target_modules'|has no 'hook_factory'|not registering any hook|Failed to (load|execute) .*plugin|Failed to apply hooks/,
		advice: 'the server runs without dumping: stop it and mend the hook before any extraction',
	},
	{
		class: 'warm-up failed',
		pattern: /Initialization failed\. warmup error/,
		advice: 'the first request failed: the traceback above it says why',
	},
	{
		class: 'hung forward',
		pattern: /[Ww]atchdog timeout/,
		advice: 'a forward pass hung: look for an Xid, then end the group and launch again',
	},
	{
		class: 'exception',
		pattern: /(Scheduler|DetokenizerManager|TokenizerManager|DataParallelController) hit an exception/,
		advice: 'the traceback that follows names the cause',
	},
	{
		class: 'health check',
		pattern: /Health check failed\. Server couldn't get a response from detokenizer/,
		advice: 'busy or stuck: see whether tokens advance before acting',
	},
	{
		class: 'child died',
		pattern: /Received sigquit from a child process|SIGQUIT received/,
		advice: 'the cause is above this line in the log',
	},
];

/** Classes that do not end a server: it may go on after them. */
const SURVIVABLE = new Set(['health check', 'hook inactive']);

export type LogFailure = {
	readonly class: string;
	readonly line: string;
	readonly advice: string;
	/** The server cannot go on after this. */
	readonly fatal: boolean;
};

/** The cause that a log names: of all lines that match, the first line of the highest-ranking class. */
export function failureIn(lines: readonly string[]): LogFailure | null {
	for (const {class: name, pattern, advice} of SIGNATURES) {
		const line = lines.find(each => pattern.test(each));
		if (line !== undefined) return {class: name, line: line.trim(), advice, fatal: !SURVIVABLE.has(name)};
	}
	return null;
}
