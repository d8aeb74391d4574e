import {defineConfig} from 'vitest/config';

/** As the bundler's text loader does. */
export const pythonAsText = {
	name: 'python-as-text',
	transform: (code: string, id: string) =>
		id.endsWith('.py') ? {code: `export default ${JSON.stringify(code)};`, map: null} : undefined,
};

export default defineConfig({
	plugins: [pythonAsText],
	test: {
		include: ['test/**/*.test.ts', 'test/**/*.test.tsx'],
		exclude: ['dist/**', 'node_modules/**'],
		testTimeout: 30_000,
		hookTimeout: 60_000,
		globalSetup: './test/support/scratch.ts',
		maxWorkers: 2,
		reporters: ['default', './test/support/summary-reporter.ts'],
	},
});
