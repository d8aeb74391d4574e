import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {expect, test} from 'vitest';
import {readConfig, showTrouble} from '../src/ops/config/config.ts';
import {scenarioList} from '../src/ops/drill/scenarios.ts';
import {OPERATIONS} from '../src/ops/operations/catalogue.ts';
import {keyList} from '../src/ui/keymap/key-list.ts';

const README = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');

test('the key list is the one the table gives (npm run keys)', () => {
	expect(README).toContain(keyList().trim());
});

test('the configuration it shows is one that is read without a word', () => {
	const text = /```yaml\n([\s\S]*?)```/.exec(README)?.[1] ?? '';
	const result = readConfig(text, 'README');
	expect(result.ok ? [] : result.troubles.map(showTrouble)).toEqual([]);
});

test('every operation is named', () => {
	expect(OPERATIONS.map(({id}) => id).filter(id => !README.includes(`\`${id}\``))).toEqual([]);
});

test('the scenarios of the drill are those of the table (relight drill --list)', () => {
	expect(README).toContain(`\`\`\`\n${scenarioList().join('\n')}\n\`\`\``);
});
