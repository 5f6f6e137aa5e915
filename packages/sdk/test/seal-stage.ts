import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import {
  buildManifest,
  composeJws,
  documentContent,
  type JsonObject,
  jwsSigningInput,
  type SealedItem,
  type SealProof,
  statementOf,
  utf8,
} from '@purser/protocol'

/** A service that seals, as a verifier sees it: its key, name and key set. */
export interface Sealer {
  readonly kid: string
  readonly privateKey: KeyObject
  readonly x: string
  readonly jwks: { readonly keys: readonly JsonObject[] }
}

/** A sealer with a fresh key. */
export function aSealer(host = 'pay.example.com', short = 'seal-1'): Sealer {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const { x = '' } = publicKey.export({ format: 'jwk' })
  const jwk = { kty: 'OKP', crv: 'Ed25519', x, kid: short, use: 'sig', alg: 'EdDSA' }
  return { kid: `did:web:${encodeURIComponent(host)}#${short}`, privateKey, x, jwks: { keys: [jwk] } }
}

/** One document and one file with their contents; the file's name is no use as a path. */
export const report: JsonObject = { total: 12.5, currency: 'USD', notes: ['für alle', null] }
export const song: Uint8Array = Uint8Array.from({ length: 200_000 }, (_, index) => (index * 7) % 251)
export const reportItem: SealedItem = {
  kind: 'document',
  id: 'doc_01',
  name: 'report',
  ...digestOf(documentContent(report)),
}
export const songItem: SealedItem = {
  kind: 'file',
  id: 'fil_01',
  name: '../song.ogg',
  mimeType: 'audio/ogg',
  ...digestOf(song),
}

/** So many documents that nobody has the contents of. */
export function manyItems(count: number): SealedItem[] {
  return Array.from({ length: count }, (_, index) => {
    const id = `doc_${String(index).padStart(8, '0')}`
    return { kind: 'document' as const, id, name: `document ${index}`, ...digestOf(utf8(id)) }
  })
}

/** The proof of a vault with these items, signed by the sealer, keys and all, as the service answers it. */
export function sealedBy(sealer: Sealer, items: readonly SealedItem[] = [reportItem, songItem]): SealProof {
  const manifest = buildManifest({
    vaultId: 'vlt_01',
    organisationId: 'org_01',
    summary: 'All done',
    sealedAt: '2026-01-02T03:04:05.678Z',
    items,
    eventsHead: { count: 3, hash: 'ab'.repeat(32) },
    payment: { paymentId: 'pay_01', amount: '0.01' },
  })
  return { manifest, statement: signedBy(sealer, statementOf(manifest)), keys: [{ kid: sealer.kid, x: sealer.x }] }
}

/** Anything, signed as a statement is. */
export function signedBy({ kid, privateKey }: Sealer, payload: JsonObject): string {
  const input = jwsSigningInput({ alg: 'EdDSA', kid }, payload)
  return composeJws(input, sign(null, utf8(input), privateKey))
}

/** Size and SHA-256 as an item has them. */
export function digestOf(bytes: Uint8Array): { readonly size: number; readonly sha256: string } {
  return { size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
}
