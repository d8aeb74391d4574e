import {expect, test} from 'vitest';
import {redact} from '../../src/ops/redact.ts';

test.each([
	['HF_TOKEN=hf_abc python', 'HF_TOKEN=*** python'],
	["env 'OPENAI_API_KEY=x' y", "env 'OPENAI_API_KEY=***' y"],
	["AWS_SECRET_ACCESS_KEY='a b' x", 'AWS_SECRET_ACCESS_KEY=*** x'],
	['--api-key s3cret --port 1', '--api-key *** --port 1'],
	['--api-key=s3cret', '--api-key=***'],
	['--admin-api-key "a b" z', '--admin-api-key *** z'],
	['Authorization: Bearer abc.def', 'Authorization: ***'],
	['NCCL_PROTO=LL --tp-size 8', 'NCCL_PROTO=LL --tp-size 8'],
])('%s', (text, expected) => {
	expect(redact(text)).toBe(expected);
});
