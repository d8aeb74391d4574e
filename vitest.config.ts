import {defineConfig} from 'vitest/config';

export default defineConfig({
	test: {
		include: ['test/**/*.test.ts', 'test/**/*.test.tsx'],
		exclude: ['dist/**', 'node_modules/**'],
		testTimeout: 30_000,
		hookTimeout: 60_000,
		maxWorkers: 2,
		reporters: ['default', './test/support/summary-reporter.ts'],
	},
});
