import { decodeBase64Url, parseJws, type SealKey } from '@purser/protocol'
import { isRecord } from '../problem.ts'

/**
 * A JSON Web Key Set (RFC 7517), as the service shows its own at `/.well-known/jwks.json`. A key whose `kid` is a whole DID URL
 * (`did:web:pay.example.com#seal-1`) is trusted for that signer alone; one with a short `kid` (`seal-1`) for whatever signer a
 * statement names, since nothing says whose it is. `fetchKeys` answers whole names: prefer those where keys of several are held.
 */
export type Jwks = { readonly keys: readonly unknown[] }

const kidLengthMax = 512

/**
 * The Ed25519 keys for signatures among those of a set; keys of other kinds and uses are passed over, as RFC 7517 section 5 asks.
 * `undefined` for what is no key set. Whether there is any key in it is for the caller to mind.
 */
export function readJwks(value: unknown): readonly SealKey[] | undefined {
  if (!isRecord(value) || !Array.isArray(value.keys)) return undefined
  return value.keys.flatMap((key: unknown) => sealKeyOf(key) ?? [])
}

/** The keys under the names that the statement of a proof could call them by. */
export function namedFor(proof: unknown, keys: readonly SealKey[]): readonly SealKey[] {
  const signer = signerOf(proof)
  if (signer === undefined) return keys
  const short = signer.slice(signer.indexOf('#') + 1)
  return keys.map((key) => (key.kid === short ? { kid: signer, x: key.x } : key))
}

/** The name of the key that a proof says it was signed with; nothing about it is proven. */
export function signerOf(proof: unknown): string | undefined {
  if (!isRecord(proof) || typeof proof.statement !== 'string') return undefined
  return parseJws(proof.statement)?.header.kid
}

function sealKeyOf(key: unknown): SealKey | undefined {
  if (!isRecord(key) || key.kty !== 'OKP' || key.crv !== 'Ed25519' || !isForSignatures(key)) return undefined
  const { kid, x } = key
  if (typeof kid !== 'string' || kid === '' || kid.length > kidLengthMax || typeof x !== 'string') return undefined
  return x.length === 43 && decodeBase64Url(x)?.length === 32 ? { kid, x } : undefined
}

/** Source: RFC 7517 sections 4.2 to 4.4; `Ed25519` as an algorithm's name is RFC 9864. */
function isForSignatures({ use, alg, key_ops: operations }: Record<string, unknown>): boolean {
  const isVerifying = operations === undefined || (Array.isArray(operations) && operations.includes('verify'))
  return isVerifying && (use === undefined || use === 'sig') && [undefined, 'EdDSA', 'Ed25519'].includes(algOf(alg))
}

function algOf(alg: unknown): string | undefined {
  return alg === undefined || typeof alg === 'string' ? alg : 'none'
}
