import {renameSync, statSync, writeFileSync} from 'node:fs';
import type {Inhabitant} from './census.ts';
import type {BoxPaths} from './paths.ts';
import type {Random} from './random.ts';

export const CARDS = 8;
export const CARD_MEMORY_MIB = 97_887;
const IDLE_MIB = 4;
const DRAW_EVERY_MS = 2_000;
const MIB = 1024 * 1024;

type Charge = {readonly pid: number; readonly index: number; readonly memoryMib: number; readonly name: string};

export const uuidOf = (index: number): string => `GPU-6b7e21${index}4-0c1d-4e5f-8a9b-0123456789${index}f`;
export const busIdOf = (index: number): string =>
	`0000000${index < 4 ? 0 : 1}:${(0x21 + index * 0x20).toString(16).slice(-2).toUpperCase()}:00.0`;

/**
 * The simulated cards: memory is what living inhabitants hold plus what the driver has not yet taken back from dead ones,
 * 0.5–1.5 s after they ended. Written as tables that the `nvidia-smi` stand-in picks its columns from.
 */
export class Gpus {
	private charges = new Map<string, Charge>();
	private readonly returning: {charge: Charge; at: number}[] = [];
	private drawnAt = 0;

	constructor(
		private readonly paths: BoxPaths,
		private readonly random: Random,
	) {}

	update(inhabitants: readonly Inhabitant[], nowMs: number): void {
		const now = new Map<string, Charge>();
		for (const {pid, startTicks, disguise} of inhabitants) {
			if (!disguise.gpu) continue;
			const name = disguise.commandLine?.[0] ?? disguise.name ?? '[Not Found]';
			now.set(`${pid}@${startTicks}`, {pid, ...disguise.gpu, name});
		}
		let changed = false;
		for (const [key, charge] of this.charges) {
			if (now.has(key)) continue;
			changed = true;
			this.returning.push({charge, at: nowMs + 500 + this.random.next() * 1_000});
		}
		for (const key of now.keys()) changed ||= !this.charges.has(key);
		this.charges = now;
		while (this.returning.some(({at}) => at <= nowMs)) {
			this.returning.splice(
				this.returning.findIndex(({at}) => at <= nowMs),
				1,
			);
			changed = true;
		}
		if (changed || nowMs - this.drawnAt >= DRAW_EVERY_MS) this.draw(nowMs);
	}

	private draw(nowMs: number): void {
		this.drawnAt = nowMs;
		const held = [...this.charges.values()];
		const busy = this.busy(nowMs);
		const used = Array.from({length: CARDS}, (_, index) =>
			[...held, ...this.returning.map(({charge}) => charge)]
				.filter(charge => charge.index === index)
				.reduce((sum, charge) => sum + charge.memoryMib, IDLE_MIB),
		);
		const cards = used.map((usedMib, index) => this.card(index, usedMib, busy));
		const fields = Object.keys(cards[0] ?? {});
		const rows = cards.map(card => Object.values(card).map(([value]) => value));
		replace(this.paths.cards, [fields, Object.values(cards[0] ?? {}).map(([, unit]) => unit), ...rows]);
		replace(this.paths.apps, [
			['gpu_uuid', 'gpu_name', 'gpu_bus_id', 'pid', 'used_memory', 'used_gpu_memory', 'process_name', 'name'],
			['', '', '', '', 'MiB', 'MiB', '', ''],
			...held.map(({pid, index, memoryMib, name}) => {
				const mib = String(memoryMib);
				return [uuidOf(index), CARD_NAME, busIdOf(index), String(pid), mib, mib, name, name];
			}),
		]);
	}

	/** The stand-in server touches a file at every request. */
	private busy(nowMs: number): boolean {
		try {
			return nowMs - statSync(this.paths.activity).mtimeMs < 1_500;
		} catch {
			return false;
		}
	}

	private card(
		index: number,
		usedMib: number,
		working: boolean,
	): Record<string, readonly [value: string, unit: string]> {
		const loaded = usedMib > 1024;
		const busy = loaded && working ? this.random.whole(71, 99) : 0;
		const watts = (busy ? 380 : loaded ? 88 : 31) + this.random.next() * 6;
		const celsius = (busy ? 66 : loaded ? 41 : 33) + this.random.whole(0, 3);
		const memory = busy ? this.random.whole(20, 45) : 0;
		const text = (value: string) => [value, ''] as const;
		const number = (value: number, unit: string) => [String(value), unit] as const;
		return {
			timestamp: text(new Date(this.drawnAt).toISOString().replace('T', ' ').slice(0, 23).replaceAll('-', '/')),
			driver_version: text('580.95.05'),
			count: text(String(CARDS)),
			index: text(String(index)),
			uuid: text(uuidOf(index)),
			gpu_uuid: text(uuidOf(index)),
			name: text(CARD_NAME),
			gpu_name: text(CARD_NAME),
			serial: text('[N/A]'),
			'pci.bus_id': text(busIdOf(index)),
			gpu_bus_id: text(busIdOf(index)),
			'pcie.link.gen.current': text(busy ? '5' : '1'),
			'pcie.link.gen.gpucurrent': text(busy ? '5' : '1'),
			'pcie.link.gen.max': text('5'),
			'pcie.link.gen.gpumax': text('5'),
			'pcie.link.width.current': text('16'),
			'pcie.link.width.max': text('16'),
			'memory.total': number(CARD_MEMORY_MIB, 'MiB'),
			'memory.used': number(usedMib, 'MiB'),
			'memory.free': number(CARD_MEMORY_MIB - 637 - usedMib, 'MiB'),
			'memory.reserved': number(637, 'MiB'),
			'utilization.gpu': number(busy, '%'),
			'utilization.memory': number(memory, '%'),
			'temperature.gpu': text(String(celsius)),
			'temperature.gpu.tlimit': text(String(SLOWDOWN_CELSIUS - celsius)),
			'temperature.memory': text('N/A'),
			'power.draw': [watts.toFixed(2), 'W'],
			'power.draw.average': [watts.toFixed(2), 'W'],
			'power.draw.instant': [watts.toFixed(2), 'W'],
			'power.limit': ['600.00', 'W'],
			'enforced.power.limit': ['600.00', 'W'],
			'power.default_limit': ['600.00', 'W'],
			'power.min_limit': ['150.00', 'W'],
			'power.max_limit': ['600.00', 'W'],
			'power.management': text('Enabled'),
			'clocks.sm': number(busy ? 2422 : 180, 'MHz'),
			'clocks.gr': number(busy ? 2422 : 180, 'MHz'),
			'clocks.mem': number(busy ? 12481 : 405, 'MHz'),
			'clocks.current.sm': number(busy ? 2422 : 180, 'MHz'),
			'clocks.current.graphics': number(busy ? 2422 : 180, 'MHz'),
			'clocks.current.memory': number(busy ? 12481 : 405, 'MHz'),
			'clocks.max.sm': number(3090, 'MHz'),
			'clocks.max.mem': number(14001, 'MHz'),
			pstate: text(busy ? 'P1' : 'P8'),
			'fan.speed': text('[N/A]'),
			persistence_mode: text('Enabled'),
			compute_mode: text('Default'),
			display_active: text('Disabled'),
			'mig.mode.current': text('Disabled'),
			'mig.mode.pending': text('Disabled'),
			'ecc.mode.current': text('Enabled'),
			'ecc.errors.corrected.volatile.total': text('0'),
			'ecc.errors.uncorrected.volatile.total': text('0'),
			'ecc.errors.uncorrected.aggregate.total': text('0'),
			...throttle('clocks_event_reasons', busy > 0),
			...throttle('clocks_throttle_reasons', busy > 0),
			vbios_version: text('98.02.52.00.02'),
			gpu_recovery_action: text('None'),
		};
	}
}

const CARD_NAME = 'NVIDIA RTX PRO 6000 Blackwell Server Edition';
export const SLOWDOWN_CELSIUS = 92;
export const cardMemoryBytes = CARD_MEMORY_MIB * MIB;

function throttle(prefix: string, busy: boolean): Record<string, readonly [string, string]> {
	const reasons = [
		'sw_power_cap',
		'hw_slowdown',
		'hw_thermal_slowdown',
		'hw_power_brake_slowdown',
		'sw_thermal_slowdown',
		'sync_boost',
	];
	return {
		[`${prefix}.active`]: [busy ? '0x0000000000000000' : '0x0000000000000001', ''],
		[`${prefix}.supported`]: ['0x00000000000001FF', ''],
		[`${prefix}.gpu_idle`]: [busy ? 'Not Active' : 'Active', ''],
		[`${prefix}.applications_clocks_setting`]: ['Not Active', ''],
		...Object.fromEntries(reasons.map(reason => [`${prefix}.${reason}`, ['Not Active', ''] as const])),
	};
}

function replace(path: string, rows: readonly (readonly string[])[]): void {
	writeFileSync(`${path}.new`, rows.map(row => `${row.join('\t')}\n`).join(''));
	renameSync(`${path}.new`, path);
}
