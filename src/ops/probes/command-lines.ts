/**
 * Command lines by identityKey, asked once per process in a lane of their own: one unlucky process can block the read of
 * its command line for ever. `null`: asked, and no answer came ("unavailable").
 */
export type CommandLineFacts = {readonly lines: ReadonlyMap<string, string | null>};
