import {
  verifyItem as checkItem,
  verifySeal as checkSeal,
  readItemProof,
  readSealProof,
  type SealKey,
  type SealVerdict,
} from '@purser/protocol'
import { mustKnow } from '../check.ts'
import { type Content, whyNotContent } from './content.ts'
import { checkEd25519 } from './ed25519.ts'
import { type Jwks, namedFor, readJwks, signerOf } from './keys.ts'
import { refused, sentences, type Verdict } from './verdict.ts'

/**
 * The trusted keys: a key set that the caller pinned or fetched (`fetchKeys`). `unsafe-keys-in-proof` uses the keys
 * in the proof. That shows integrity but not origin: a forger can put their own keys there.
 */
export type TrustedKeys = Jwks | 'unsafe-keys-in-proof'

export type VerifyOptions = { readonly keys: TrustedKeys }

export type VerifyItemOptions = {
  /** The proof of an item contains no keys. */
  readonly keys: Jwks
  /** The content to compare with the item. If omitted, no content is checked. */
  readonly content?: Content | undefined
}

/**
 * Checks whether a proof (`GET /vaults/{id}/proof`) matches what the service signed when it sealed the vault: all
 * items with name, size, hash and order, and every byte of the manifest. Uses no network. Never throws because of the
 * proof; throws if the engine has no Ed25519.
 *
 * @example
 * import { fetchKeys, verifySeal } from '@purser/sdk/seal'
 *
 * export async function isGenuine(proof: unknown): Promise<boolean> {
 *   const verdict = await verifySeal(proof, { keys: await fetchKeys('https://pay.example.com') })
 *   return verdict.ok
 * }
 */
export async function verifySeal(proof: unknown, options: VerifyOptions): Promise<Verdict> {
  mustKnow(options, { keys: true }, 'The second argument')
  const { keys } = options
  const trusted = keys === 'unsafe-keys-in-proof' ? keysIn(proof) : readJwks(keys)
  if (trusted === undefined || (trusted.length === 0 && keys !== 'unsafe-keys-in-proof'))
    return refused('keys-unusable')
  return verdictOf(proof, await checkSeal(proof, checkEd25519, namedFor(proof, trusted)))
}

/**
 * Checks whether an item was in the sealed vault (`GET /vaults/{id}/proof?item=…`, or `itemProof` of a whole proof),
 * and whether `content` is the item's content. The content is read only if the proof is valid. Otherwise as
 * `verifySeal`.
 *
 * @example
 * import { fetchKeys, verifyItem } from '@purser/sdk/seal'
 *
 * export async function isSealedFile(itemProof: unknown, file: Blob): Promise<boolean> {
 *   const verdict = await verifyItem(itemProof, { keys: await fetchKeys('https://pay.example.com'), content: file })
 *   return verdict.ok
 * }
 */
export async function verifyItem(proof: unknown, options: VerifyItemOptions): Promise<Verdict> {
  // A mistyped `content` would leave the content unchecked.
  mustKnow(options, { keys: true, content: true }, 'The second argument')
  const { keys, content } = options
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
