import type {OperationId} from '../../ops/operations/operation.ts';

/** The key of each operation in the menu behind `o`. */
export const OPERATION_KEYS: Readonly<Partial<Record<OperationId, string>>> = {
	'stop-service': '1',
	'free-gpus': '2',
	'launch-server': '3',
	'run-extractor': '4',
	recover: '5',
	'restore-files': '6',
	'clear-dumps': '7',
	'stop-extractor': '8',
	'stop-server': '9',
	undo: 'u',
};

/** `o 1`, or null for an operation that has no key. */
export function operationKeys(operation: OperationId): string | null {
	const digit = OPERATION_KEYS[operation];
	return digit === undefined ? null : `o ${digit}`;
}
