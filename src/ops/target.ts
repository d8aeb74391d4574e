import type {Link} from './formats/topology.ts';
import type {Environment} from './transports/transport.ts';

/** One host as the configuration describes it, with everything that is to happen there. Paths are paths on the host. */
export type Target = {
	readonly name: string;
	readonly routes: readonly RouteConfig[];
	readonly expect: Expectation;
	/** Unit name patterns (`*`, `?`) that must not run and must not come back. */
	readonly unwanted: readonly string[];
	readonly server: ServerConfig | null;
	readonly dump: DumpConfig | null;
	readonly extraction: ExtractionConfig | null;
	/** Other files that must be on the host, beside the extraction script. */
	readonly files: readonly FileConfig[];
};

export type RouteConfig = {
	/** `null` is this machine; else `[user@]host[:port]` or an alias of ~/.ssh/config. */
	readonly ssh: string | null;
	/** Argument prefix that leads from there to the host: `pct exec 129 --`. */
	readonly through: readonly string[] | null;
	readonly identityFile: string | null;
	readonly knownHostsFile: string | null;
	/** Read instead of ~/.ssh/config, as `ssh -F` does. */
	readonly sshConfigFile?: string | undefined;
	readonly environment: Environment;
};

export type Expectation = {
	readonly gpus: number | null;
	/** No pair of cards may be farther apart than this; not set: as far as when the server last came up. */
	readonly links?: Link;
	readonly mounts: readonly ExpectedMount[];
};

export type ExpectedMount = {
	readonly path: string;
	/** File system type, source device or volume id as far as they are fixed; null is "any". */
	readonly type: string | null;
	readonly source: string | null;
	readonly volume: string | null;
	readonly freeBytes: number | null;
};

export type ServerConfig = {
	readonly python: string;
	readonly tree: string | null;
	readonly model: string;
	readonly port: number;
	readonly env: Readonly<Record<string, string>>;
	readonly args: readonly string[];
	/** Directory for one log per launch. */
	readonly log: string;
	/** Unit name and launch id; one server per name. */
	readonly name: string;
	/** Whether a launch gets the flags that whole states need and its line does not have; off when not said. */
	readonly protect?: boolean;
	/** How long a start may take before it counts as stalled, per phase. */
	readonly phaseLimitMs: number;
};

export type DumpConfig = {readonly dir: string; readonly limitBytes: number | null};

export type ExtractionConfig = {
	readonly dataset: string;
	readonly records: number | null;
	readonly tokens: number | null;
	/** Of the dataset as it lies on the disk. */
	readonly sha256?: string | null | undefined;
	readonly output: string;
	readonly layout: 'legacy' | 'specforge' | 'speculators' | 'universal';
	readonly groupSize: number;
	readonly hiddenSize: number;
	readonly maxTokens: number;
	readonly overlength: 'truncate' | 'filter';
	readonly concurrency: number;
	/** Stored samples that are extracted again and compared before the first new one; 3 when not set. */
	readonly continuity?: number | undefined;
	/** So much stays free on the output's disk; when not set, room for some samples. */
	readonly keepFreeBytes?: number | undefined;
	/** The run's own progress file, written by `relight extract` beside the output. */
	readonly progress: string;
	/** External script instead of the built-in extractor. */
	readonly script: ScriptConfig | null;
	/** Program on the host that is the built-in extractor; null: it is sent there. */
	readonly program: readonly string[] | null;
	/** What was built to be sent; not set where this relight was not built. */
	readonly built?: BuiltExtractor;
	/** Path on the host of the configuration that `relight extract` reads. */
	readonly config: string | null;
	readonly log: string;
	/** How long the new run must be seen moving before it counts as resumed. */
	readonly confirmMs: number;
};

/** The built-in extractor as it lies on the operator's machine. */
export type BuiltExtractor = {
	/** Kind of that machine, as Node names it: `linux-x64`. */
	readonly here: string;
	/** One file for the host's own Node. */
	readonly bundle: string;
	/** For Linux hosts without one; at most one for each kind of processor, empty before `npm run build:standalone`. */
	readonly executables: readonly Executable[];
};

export type Executable = {
	/** As Node names it: `x64`. */
	readonly architecture: string;
	readonly source: string;
	readonly bytes: number;
	readonly sha256: string;
};

export type ScriptConfig = FileConfig & {readonly argv: readonly string[]};

export type FileConfig = {
	/** Path on the operator's machine of the good copy. */
	readonly source: string;
	readonly destination: string;
	readonly sha256: string | null;
	readonly mode: string;
};
