/** Element types that files may hold, under their safetensors names. */
export type Dtype =
	| 'BOOL'
	| 'U8'
	| 'I8'
	| 'F8_E4M3'
	| 'F8_E5M2'
	| 'U16'
	| 'I16'
	| 'F16'
	| 'BF16'
	| 'U32'
	| 'I32'
	| 'F32'
	| 'U64'
	| 'I64'
	| 'F64'
	| 'C64'
	| 'C128';

export const ITEM_BYTES: Readonly<Record<Dtype, number>> = {
	BOOL: 1,
	U8: 1,
	I8: 1,
	F8_E4M3: 1,
	F8_E5M2: 1,
	U16: 2,
	I16: 2,
	F16: 2,
	BF16: 2,
	U32: 4,
	I32: 4,
	F32: 4,
	U64: 8,
	I64: 8,
	F64: 8,
	C64: 8,
	C128: 16,
};

/** Types that torch stores under a class of their own; the others are written as untyped bytes with a dtype beside. */
export type StorageDtype = Exclude<Dtype, 'F8_E4M3' | 'F8_E5M2' | 'U16' | 'U32' | 'U64'>;

export const STORAGES: Readonly<Record<StorageDtype, string>> = {
	BOOL: 'BoolStorage',
	U8: 'ByteStorage',
	I8: 'CharStorage',
	I16: 'ShortStorage',
	I32: 'IntStorage',
	I64: 'LongStorage',
	F16: 'HalfStorage',
	BF16: 'BFloat16Storage',
	F32: 'FloatStorage',
	F64: 'DoubleStorage',
	C64: 'ComplexFloatStorage',
	C128: 'ComplexDoubleStorage',
};

/** torch's names of element types, as `torch.<name>`. */
export const TORCH_DTYPES: ReadonlyMap<string, Dtype> = new Map<string, Dtype>([
	['bool', 'BOOL'],
	['uint8', 'U8'],
	['int8', 'I8'],
	['float8_e4m3fn', 'F8_E4M3'],
	['float8_e5m2', 'F8_E5M2'],
	['uint16', 'U16'],
	['int16', 'I16'],
	['float16', 'F16'],
	['bfloat16', 'BF16'],
	['uint32', 'U32'],
	['int32', 'I32'],
	['float32', 'F32'],
	['uint64', 'U64'],
	['int64', 'I64'],
	['float64', 'F64'],
	['complex64', 'C64'],
	['complex128', 'C128'],
]);
