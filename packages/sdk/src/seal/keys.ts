import { decodeBase64Url, parseJws, type SealKey } from '@purser/protocol'
import { isRecord } from '../problem.ts'

/**
 * A JSON Web Key Set (RFC 7517), as at `/.well-known/jwks.json` of the service. A key whose `kid` is a full DID URL
 * (`did:web:pay.example.com#seal-1`) is trusted for that signer only. A key with a short `kid` (`seal-1`) is trusted
 * for any signer that a statement names. `fetchKeys` returns full names: use those if you store keys of several
 * signers.
 */
export type Jwks = { readonly keys: readonly unknown[] }

const kidLengthMax = 512

/**
 * The Ed25519 signature keys of a set. Other keys are ignored, as RFC 7517 section 5 requires. `undefined` if the
 * value is not a key set. The result may be empty.
 */
export function readJwks(value: unknown): readonly SealKey[] | undefined {
  if (!isRecord(value) || !Array.isArray(value.keys)) return undefined
  return value.keys.flatMap((key: unknown) => sealKeyOf(key) ?? [])
}

/** The keys under the names by which the statement of a proof may refer to them. */
export function namedFor(proof: unknown, keys: readonly SealKey[]): readonly SealKey[] {
  const signer = signerOf(proof)
  if (signer === undefined) return keys
  const short = signer.slice(signer.indexOf('#') + 1)
  return keys.map((key) => (key.kid === short ? { kid: signer, x: key.x } : key))
}

/** The name of the key that a proof claims. Unverified. */
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

/** Source: RFC 7517 sections 4.2 to 4.4; the algorithm name `Ed25519` is defined in RFC 9864. */
function isForSignatures({ use, alg, key_ops: operations }: Record<string, unknown>): boolean {
  const isVerifying = operations === undefined || (Array.isArray(operations) && operations.includes('verify'))
  return isVerifying && (use === undefined || use === 'sig') && [undefined, 'EdDSA', 'Ed25519'].includes(algOf(alg))
}

function algOf(alg: unknown): string | undefined {
  return alg === undefined || typeof alg === 'string' ? alg : 'none'
}
