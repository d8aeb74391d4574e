import {createHash} from 'node:crypto';
import text from './relight_hs.py';

/** The hook that this relight carries: what a host is given, and what a host's own copy is compared with. */
export const HOOK_FILE = 'relight_hs.py';
export const HOOK_TEXT = text;
export const HOOK_SHA256 = createHash('sha256').update(text).digest('hex');
