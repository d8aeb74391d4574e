import {spawnSync} from 'node:child_process';
import {type TestContext, test} from 'vitest';

/** A test that says in words why it was left out: `need` gives those, or null when it can run. */
export function lab(name: string, need: () => string | null, run: (context: TestContext) => Promise<void>): void {
	test(name, async context => {
		const why = need();
		if (why !== null) context.skip(why);
		await run(context);
	});
}

/** The first thing that is missing. */
export const all =
	(...needs: readonly (() => string | null)[]) =>
	(): string | null => {
		for (const need of needs) {
			const why = need();
			if (why !== null) return why;
		}
		return null;
	};

export const root = (): string | null => (process.getuid?.() === 0 ? null : 'it needs root');

export const program = (name: string, inPackage: string) => (): string | null =>
	spawnSync('which', [name]).status === 0 ? null : `there is no ${name} here (package ${inPackage})`;
