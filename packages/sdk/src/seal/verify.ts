import {
  verifyItem as checkItem,
  verifySeal as checkSeal,
  readItemProof,
  readSealProof,
  type SealKey,
  type SealVerdict,
} from '@purser/protocol'
import { type Content, whyNotContent } from './content.ts'
import { checkEd25519 } from './ed25519.ts'
import { type Jwks, namedFor, readJwks, signerOf } from './keys.ts'
import { refused, sentences, type Verdict } from './verdict.ts'

/**
 * Whose signature counts: a key set that the caller pinned or fetched (`fetchKeys`). `unsafe-keys-in-proof` takes those that the
 * proof brings along, which shows that it is whole and nothing of who made it: whoever forges a proof writes keys of their own there.
 */
export type TrustedKeys = Jwks | 'unsafe-keys-in-proof'

export type VerifyOptions = { readonly keys: TrustedKeys }

export type VerifyItemOptions = {
  /** The proof of an item brings no keys along. */
  readonly keys: Jwks
  /** What the caller holds as the item's content. Without it nothing is said of any content. */
  readonly content?: Content | undefined
}

/**
 * Whether a proof (`GET /vaults/{id}/proof`) says what the service signed when it sealed the vault: every item with its name, size
 * and hash, in their order, and every byte of the manifest. No network is used. Anything may be given as the proof and nothing of
 * it makes this throw; it throws where the engine has no Ed25519.
 */
export async function verifySeal(proof: unknown, { keys }: VerifyOptions): Promise<Verdict> {
  const trusted = keys === 'unsafe-keys-in-proof' ? keysIn(proof) : readJwks(keys)
  if (trusted === undefined || (trusted.length === 0 && keys !== 'unsafe-keys-in-proof'))
    return refused('keys-unusable')
  return verdictOf(proof, await checkSeal(proof, checkEd25519, namedFor(proof, trusted)))
}

/**
 * Whether one item was in the sealed vault (`GET /vaults/{id}/proof?item=…`, or `itemProof` of a whole proof), and whether `content`
 * is what was sealed as that item; content is only read once the proof holds. Otherwise as `verifySeal`.
 */
export async function verifyItem(proof: unknown, { keys, content }: VerifyItemOptions): Promise<Verdict> {
  const trusted = readJwks(keys) ?? []
  if (trusted.length === 0) return refused('keys-unusable')
  const verdict = verdictOf(proof, await checkItem(proof, checkEd25519, namedFor(proof, trusted)))
  const read = readItemProof(proof)
  if (!verdict.ok || content === undefined || 'fault' in read) return verdict
  return (await whyNotContent(read.value.item, content)) ?? verdict
}

function keysIn(proof: unknown): readonly SealKey[] {
  const read = readSealProof(proof)
  return 'fault' in read ? [] : (read.value.keys ?? [])
}

function verdictOf(proof: unknown, verdict: SealVerdict): Verdict {
  if (verdict.ok) return verdict
  const refusal = refused(verdict.fault, sentences[verdict.fault], verdict.at)
  return verdict.fault === 'key-unknown' ? { ...refusal, claimedKid: signerOf(proof) } : refusal
}
