import {z} from 'zod';
import {LINKS} from '../formats/topology.ts';

/** The configuration as written: relight.yaml. Every message says what was expected. */

const UNITS: Record<string, number> = {
	'': 1,
	K: 1e3,
	M: 1e6,
	G: 1e9,
	T: 1e12,
	Ki: 2 ** 10,
	Mi: 2 ** 20,
	Gi: 2 ** 30,
	Ti: 2 ** 40,
};

/** `64G` is decimal, `64Gi` is binary, a bare number is a count or bytes. */
const quantity = z.union([z.number(), z.string()]).transform((value, context) => {
	const match = /^(\d+(?:\.\d+)?)\s*([KMGT]i?)?B?$/.exec(String(value));
	const unit = UNITS[match?.[2] ?? ''];
	if (!match || unit === undefined) {
		context.addIssue({code: 'custom', message: 'expected a number with an optional unit: 512M, 2T, 64Gi'});
		return z.NEVER;
	}
	return Math.round(Number(match[1]) * unit);
});

/** Accepts what YAML makes of an unquoted word or number. */
const word = z.union([z.string(), z.number(), z.boolean()]).transform(String);
const absolute = z.string().regex(/^\//, 'expected an absolute path on the host');
const argv = z.union([z.string().transform(text => text.trim().split(/\s+/)), z.array(word)]);
const sha256 = z.string().regex(/^[0-9a-f]{64}$/i, 'expected 64 hexadecimal digits');

const environment = z.strictObject({
	path: z.string().optional(),
	home: absolute.optional(),
	proc: absolute.optional(),
	dev: absolute.optional(),
	sys: absolute.optional(),
	etc: absolute.optional(),
});

const route = z
	.strictObject({
		local: z.literal(true).optional(),
		ssh: z.string().optional(),
		through: argv.optional(),
		key: z.string().optional(),
		knownHosts: z.string().optional(),
		sshConfig: z.string().regex(/^[/~]/, 'expected a path from / or ~').optional(),
		environment: environment.optional(),
	})
	.refine(
		value => (value.local === undefined) !== (value.ssh === undefined),
		'expected `local: true` or `ssh: [user@]host[:port]`',
	);

const mount = z.strictObject({
	type: z.string().optional(),
	source: z.string().optional(),
	volume: z.string().optional(),
	free: quantity.optional(),
});

const file = z.strictObject({
	source: z.string(),
	destination: absolute,
	sha256: sha256.optional(),
	mode: z
		.string()
		.regex(/^[0-7]{3,4}$/, 'expected an octal mode such as "644"')
		.default('644'),
});

const host = z.strictObject({
	routes: z.array(route).min(1, 'expected at least one route'),
	expect: z
		.strictObject({
			gpus: z.int().nonnegative().optional(),
			links: z.enum(LINKS).optional(),
			mounts: z.record(absolute, mount.nullable()).optional(),
		})
		.optional(),
	unwanted: z.array(z.string()).default([]),
});

const server = z.strictObject({
	python: absolute,
	tree: absolute.optional(),
	model: absolute,
	port: z.int().min(1).max(65_535),
	env: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), word).default({}),
	args: z.array(word).default([]),
	log: absolute,
	name: z
		.string()
		.regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, 'expected a unit name without blanks')
		.default('relight-server'),
	phaseLimit: z.number().positive().default(900),
	protect: z.boolean().default(true),
});

const extraction = z.strictObject({
	dataset: absolute,
	expect: z
		.strictObject({records: quantity.optional(), tokens: quantity.optional(), sha256: sha256.optional()})
		.optional(),
	output: absolute,
	layout: z.enum(['legacy', 'specforge', 'speculators', 'universal']).default('legacy'),
	groupSize: z.int().positive().default(2_000),
	hiddenSize: z.int().positive().default(7_168),
	maxTokens: z.int().positive().default(8_192),
	overlength: z.enum(['truncate', 'filter']).default('truncate'),
	concurrency: z.int().min(1).max(64).default(1),
	continuity: z.int().nonnegative().optional(),
	keepFree: quantity.optional(),
	progress: absolute.optional(),
	log: absolute.optional(),
	program: argv.optional(),
	config: absolute.optional(),
	confirm: z.number().positive().default(60),
	script: file.extend({argv: z.array(word).default([]), log: absolute.optional()}).optional(),
});

export const fileSchema = z.strictObject({
	hosts: z.record(z.string(), host).refine(hosts => Object.keys(hosts).length > 0, 'expected at least one host'),
	server: server.optional(),
	dump: z.strictObject({dir: absolute, limit: quantity.optional()}).optional(),
	extraction: extraction.optional(),
	files: z.array(file).default([]),
});

export type ConfigFile = z.output<typeof fileSchema>;
