import type {Reporter, TestModule} from 'vitest/node';

/** The last line of a run, the same in every language: how many passed, failed and were skipped. */
export default class SummaryReporter implements Reporter {
	onTestRunEnd(modules: readonly TestModule[]): void {
		const count = {passed: 0, failed: 0, skipped: 0};
		for (const module of modules) {
			let tests = 0;
			for (const test of module.children.allTests()) {
				tests++;
				const {state} = test.result();
				if (state === 'passed' || state === 'failed' || state === 'skipped') count[state]++;
			}
			// A file that could not be read at all is a failure of its own.
			if (tests === 0 && module.state() === 'failed') count.failed++;
		}
		process.stdout.write(`\n${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped\n`);
	}
}
