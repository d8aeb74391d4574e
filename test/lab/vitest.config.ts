import {defineConfig} from 'vitest/config';
import {pythonAsText} from '../../vitest.config.ts';

/** Against real servers and kernels, as root. One file after another: they freeze what they started. */
export default defineConfig({
	plugins: [pythonAsText],
	test: {
		include: ['test/lab/*.lab.ts'],
		testTimeout: 120_000,
		hookTimeout: 60_000,
		fileParallelism: false,
		reporters: ['verbose', './test/support/summary-reporter.ts'],
	},
});
