import type { SealFault, SealStatement } from '@purser/protocol'

/**
 * Why a proof was not found good. Those of the protocol speak of the proof; `keys-unusable` of the key set that the caller gave,
 * and `content-too-large` of content that `contentBytesMax` keeps from being read: neither says anything against the proof.
 */
export type Fault = SealFault | 'keys-unusable' | 'content-too-large'

/**
 * What came of a check. `kid` names the key that signed and `statement` is what it signed. `fault` is what to branch on, `detail`
 * a sentence for people, without any text of the proof; `at` says where a malformed one is so (JSON Pointer), else empty. With
 * `key-unknown` comes the name that the statement calls its key by, which anybody could have written there.
 */
export type Verdict = { readonly ok: true; readonly kid: string; readonly statement: SealStatement } | Refusal

type Refusal = {
  readonly ok: false
  readonly fault: Fault
  readonly at: string
  readonly detail: string
  readonly claimedKid?: string | undefined
}

/** The sentence of each fault. */
export const sentences: Readonly<Record<Fault, string>> = {
  'proof-malformed': 'This is not a proof of a sealed vault, or of an item in one, in the form that the service gives.',
  'statement-malformed': 'The signed statement of the proof is not one about a seal.',
  'key-unknown': 'The statement names a key, and the signer it belongs to, that is not among the trusted keys.',
  'signature-invalid': 'The signature on the statement was not made with the key that it names.',
  'vault-differs': 'The statement is about another vault than the manifest.',
  'sealed-at-differs': 'The statement gives another time of sealing than the manifest.',
  'tree-size-differs': 'The number of items is not that which was sealed.',
  'merkle-root-differs': 'An item was changed, added, dropped or moved since the vault was sealed.',
  'manifest-hash-differs': 'The items are those that were sealed, but something else in the manifest was changed.',
  'not-included': 'The item is not the one that was sealed at that place.',
  'content-differs': 'The content is not that which was sealed.',
  'keys-unusable': 'What was given as keys is not a JSON Web Key Set with an Ed25519 key for signatures.',
  'content-too-large': 'The content is too large to be hashed in memory; give its size and SHA-256 instead.',
}

/** A verdict against a proof; its sentence is the fault's own unless a closer one is given. */
export function refused(fault: Fault, detail = sentences[fault], at = ''): Refusal {
  return { ok: false, fault, at, detail }
}
