/**
 * What a route must hear from the operator before it can go on. A *question* is plain data for a dialog or a terminal; what
 * stands in its prompts comes from the other end and is hostile. An *asker* brings questions before the operator, one at a
 * time, and gives back one answer per prompt, or null: skipped, or nobody waits for it any more. Answers live in memory only.
 */
export type Question =
	| {readonly kind: 'passphrase'; readonly file: string; readonly again: boolean}
	| {readonly kind: 'password'; readonly account: string; readonly again: boolean}
	/** keyboard-interactive: title, instructions and prompts as the server sent them. */
	| {
			readonly kind: 'prompts';
			readonly account: string;
			readonly title: string;
			readonly instructions: string;
			readonly prompts: readonly Prompt[];
	  }
	/** `label` is type and fingerprint; the answer `yes` keeps the key in `file`. */
	| {readonly kind: 'host-key'; readonly name: string; readonly label: string; readonly file: string};

/** `echo`: the server allows that the answer is seen. */
export type Prompt = {readonly text: string; readonly echo: boolean};

export type Asker = {
	/** `withdrawn`: the other end does not wait any more. */
	ask(question: Question, withdrawn?: AbortSignal): Promise<readonly string[] | null>;
	/** Whether a host key may be decided on here: it wants eyes, not a script. */
	readonly decidesHostKeys: boolean;
};

/** The prompts of a question in its own order. */
export function promptsOf(question: Question): readonly Prompt[] {
	switch (question.kind) {
		case 'passphrase':
			return [{text: `passphrase of ${question.file}`, echo: false}];
		case 'password':
			return [{text: `password of ${question.account}`, echo: false}];
		case 'prompts':
			return question.prompts;
		case 'host-key':
			return [{text: 'type yes to keep this key', echo: true}];
	}
}

/** What it is about, for status lines and the journal: nothing that the other end wrote. */
export function topicOf(question: Question): string {
	switch (question.kind) {
		case 'passphrase':
			return `passphrase of ${question.file}`;
		case 'password':
			return `password of ${question.account}`;
		case 'prompts':
			return `what ${question.account} asks for`;
		case 'host-key':
			return `host key of ${question.name} (${question.label})`;
	}
}
