import type { SealFault, SealStatement } from '@purser/protocol'

/**
 * The reason why a proof was not accepted. `keys-unusable` concerns the key set of the caller, and `content-too-large`
 * content above `contentBytesMax`; neither means that the proof is invalid. All others concern the proof.
 */
export type Fault = SealFault | 'keys-unusable' | 'content-too-large'

/**
 * The result of a check. `kid` names the signing key and `statement` is what it signed. Branch on `fault`; `detail`
 * is a sentence for people and contains no text of the proof. `at` is a JSON Pointer to the malformed part, or empty.
 * `key-unknown` includes the key name that the statement claims, which is unverified.
 */
export type Verdict = { readonly ok: true; readonly kid: string; readonly statement: SealStatement } | Refusal

type Refusal = {
  readonly ok: false
  readonly fault: Fault
  readonly at: string
  readonly detail: string
  readonly claimedKid?: string | undefined
}

/** The default sentence of each fault. */
export const sentences: Readonly<Record<Fault, string>> = {
  'proof-malformed': 'This is not a proof of a sealed vault, or of an item in one, in the format of the service.',
  'statement-malformed': 'The signed statement of the proof is not about a seal.',
  'key-unknown': 'The statement names a key and signer that are not among the trusted keys.',
  'signature-invalid': 'The signature was not made with the key that the statement names.',
  'vault-differs': 'The statement is about another vault than the manifest.',
  'sealed-at-differs': 'The statement gives another time of sealing than the manifest.',
  'tree-size-differs': 'The number of items differs from what was sealed.',
  'merkle-root-differs': 'An item was changed, added, dropped or moved since the vault was sealed.',
  'manifest-hash-differs': 'The items match what was sealed, but another part of the manifest was changed.',
  'not-included': 'The item is not the one that was sealed at that position.',
  'content-differs': 'The content differs from what was sealed.',
  'keys-unusable': 'The keys are not a JSON Web Key Set with an Ed25519 signature key.',
  'content-too-large': 'The content is too large to be hashed in memory. Pass its size and SHA-256 instead.',
}

/** A negative verdict. `detail` defaults to the sentence of the fault. */
export function refused(fault: Fault, detail = sentences[fault], at = ''): Refusal {
  return { ok: false, fault, at, detail }
}
