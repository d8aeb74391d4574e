// Writes the generated key list into the README.
import {execFileSync} from 'node:child_process';
import {readFileSync, writeFileSync} from 'node:fs';

const list = execFileSync(process.execPath, ['dist/relight.js', 'keys']).toString().trim();
const text = readFileSync('README.md', 'utf8');
writeFileSync('README.md', text.replace(/(<!-- keys: [^\n]*-->\n)[\s\S]*?(<!-- \/keys -->)/, `$1\n${list}\n\n$2`));
