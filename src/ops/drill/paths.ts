/** Where everything lies in a box. All absolute; what the console is told are exactly these. */
export type BoxPaths = ReturnType<typeof boxPaths>;

export function boxPaths(root: string) {
	const work = `${root}/data/eagle3/synth_100k`;
	return {
		root,
		leash: `${root}/leash`,
		/** Proof that a directory is a box, before anything in it is removed. */
		mark: `${root}/.relight-drill`,
		bin: `${root}/bin`,
		libexec: `${root}/libexec`,
		run: `${root}/run`,
		requests: `${root}/run/requests`,
		answers: `${root}/run/answers`,
		disguises: `${root}/run/disguises`,
		ports: `${root}/run/ports`,
		cards: `${root}/run/gpu/cards.tsv`,
		apps: `${root}/run/gpu/apps.tsv`,
		activity: `${root}/run/gpu/activity`,
		manager: `${root}/run/systemd`,
		/** As long as it exists, nvidia-smi gives no answer. */
		wedged: `${root}/run/gpu/wedged`,
		kernelLog: `${root}/run/kernel.tsv`,
		proc: `${root}/proc`,
		dev: `${root}/dev`,
		sys: `${root}/sys`,
		cgroups: `${root}/sys/fs/cgroup`,
		etc: `${root}/etc`,
		unitFiles: `${root}/etc/systemd/system`,
		/** Where packages put unit files and links, out of `disable`'s reach. */
		vendorUnits: `${root}/usr/lib/systemd/system`,
		home: `${root}/root`,
		python: `${root}/root/ml-env/bin/python3`,
		tree: `${root}/root/sglang`,
		patched: `${root}/root/sglang/python/sglang/srt/models/deepseek_v2.py`,
		model: `${root}/shared/kimi-k2.5-int4`,
		volume: `${root}/data`,
		share: `${root}/shared`,
		shm: `${root}/dev/shm`,
		dumps: `${root}/dev/shm/sglang_hs`,
		temporary: `${root}/tmp`,
		dataset: `${work}/merged.json`,
		output: `${work}/hidden_states`,
		/** Persistent, unlike the dump directory. */
		hook: `${root}/root/relight/relight_hs.py`,
		/** Which of its two dumpers a server with the hook found, in words. */
		hookWriter: `${root}/run/hook-writer`,
		progress: `${work}/extraction-progress.json`,
		logs: `${work}/logs`,
		extractionLog: `${work}/logs/extraction2.log`,
		script: `${root}/tmp/02b_extract_hidden_states_sglang.py`,
		operator: `${root}/operator`,
		identity: `${root}/operator/id_ed25519`,
		knownHosts: `${root}/operator/known_hosts`,
		goodScript: `${root}/operator/eagle3/02b_extract_hidden_states_sglang.py`,
		goodHook: `${root}/operator/eagle3/relight_hs.py`,
		config: `${root}/relight.yaml`,
		/** What `drill-part` reads: the box's extraction settings and the size of its world. */
		settings: `${root}/run/settings.json`,
	};
}

/** PATH of everything that runs in the box: stand-ins first, then the system's own tools. */
export const boxPath = (paths: BoxPaths): string => `${paths.bin}:/usr/bin:/bin`;
