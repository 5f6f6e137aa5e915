import { decodeBase64Url } from './base64.ts'
import { type Jws, parseJws } from './jws.ts'
import { isMerkleIncluded } from './merkle.ts'
import { hashBytesOf, itemLeafHash, manifestHash, merkleRootOf } from './seal.ts'
import type { SealKey, SealStatement } from './seal-parse.ts'
import { readItemProof, readSealProof, readStatement } from './seal-parse.ts'

/**
 * Verifies an Ed25519 signature of 64 bytes (RFC 8032). The public key has 32 bytes. The caller gets what it throws.
 */
export type VerifyEd25519 = (
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
) => boolean | Promise<boolean>

/**
 * The reason why a proof is invalid. `merkle-root-differs`: an item was changed, added, dropped or moved;
 * `manifest-hash-differs`: the items are unchanged, but another part of the manifest is not; `not-included`: the item
 * is not the one that was sealed at that place; `content-differs`: the item was sealed, and the given content is not
 * its content.
 */
export type SealFault =
  | 'proof-malformed'
  | 'statement-malformed'
  | 'key-unknown'
  | 'signature-invalid'
  | 'vault-differs'
  | 'sealed-at-differs'
  | 'tree-size-differs'
  | 'merkle-root-differs'
  | 'manifest-hash-differs'
  | 'not-included'
  | 'content-differs'

/** The result of a check. `at` is a JSON Pointer to the part that is malformed, and empty for every other fault. */
export type SealVerdict =
  | { readonly ok: true; readonly kid: string; readonly statement: SealStatement }
  | { readonly ok: false; readonly fault: SealFault; readonly at: string }

/**
 * Checks whether a proof matches what the service signed when the vault was sealed: every item and every byte of the
 * manifest. Needs no network. `keys` are the trusted keys, pinned or from the service's DID document. The keys inside
 * the proof are never used, because a forger could put their own keys there.
 *
 * @example
 * (await verifySeal({}, () => true, [])).fault // 'proof-malformed'
 */
export async function verifySeal(
  proof: unknown,
  verifyEd25519: VerifyEd25519,
  keys: readonly SealKey[],
): Promise<SealVerdict> {
  const read = readSealProof(proof)
  if ('fault' in read) return no('proof-malformed', read.fault.path)
  const { manifest } = read.value
  const signed = await signedStatement(read.value.statement, verifyEd25519, keys)
  if (!signed.ok) return signed
  const { statement } = signed
  if (statement.vaultId !== manifest.vaultId) return no('vault-differs')
  if (statement.sealedAt !== manifest.sealedAt) return no('sealed-at-differs')
  if (statement.treeSize !== manifest.items.length) return no('tree-size-differs')
  if (statement.merkleRoot !== merkleRootOf(manifest)) return no('merkle-root-differs')
  return statement.manifestHash === manifestHash(manifest) ? signed : no('manifest-hash-differs')
}

/**
 * Checks whether an item was in the vault that the statement seals, without knowing the others. With `contentSha256`
 * (lower-case hex, of the content as the caller got it) also checks whether that content is the item's; without it no
 * content is checked. `keys` as for `verifySeal`.
 *
 * @example
 * (await verifyItem({}, () => true, [])).fault // 'proof-malformed'
 */
export async function verifyItem(
  proof: unknown,
  verifyEd25519: VerifyEd25519,
  keys: readonly SealKey[],
  contentSha256?: string,
): Promise<SealVerdict> {
  const read = readItemProof(proof)
  if ('fault' in read) return no('proof-malformed', read.fault.path)
  const { item, index, treeSize } = read.value
  const signed = await signedStatement(read.value.statement, verifyEd25519, keys)
  if (!signed.ok) return signed
  if (signed.statement.treeSize !== treeSize) return no('tree-size-differs')
  const inclusion = { leafHash: itemLeafHash(item), index, treeSize, path: read.value.path.map(hashBytesOf) }
  if (!isMerkleIncluded(inclusion, hashBytesOf(signed.statement.merkleRoot))) return no('not-included')
  return contentSha256 === undefined || contentSha256 === item.sha256 ? signed : no('content-differs')
}

async function signedStatement(
  text: string,
  verifyEd25519: VerifyEd25519,
  keys: readonly SealKey[],
): Promise<SealVerdict> {
  const jws = parseJws(text)
  if (jws === undefined) return no('statement-malformed')
  const read = readStatement(jws.payload)
  if ('fault' in read) return no('statement-malformed', read.fault.path)
  const named = keys.filter(({ kid }) => kid === jws.header.kid)
  if (named.length === 0) return no('key-unknown')
  for (const key of named) {
    if (await isSignedBy(jws, key, verifyEd25519)) return { ok: true, kid: key.kid, statement: read.value }
  }
  return no('signature-invalid')
}

async function isSignedBy(jws: Jws, key: SealKey, verifyEd25519: VerifyEd25519): Promise<boolean> {
  const publicKey = decodeBase64Url(key.x)
  return publicKey?.length === 32 && (await verifyEd25519(publicKey, jws.signingInput, jws.signature)) === true
}

function no(fault: SealFault, at = ''): SealVerdict {
  return { ok: false, fault, at }
}
