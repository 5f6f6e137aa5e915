import { decodeBase64Url, type JsonObject, parseJws } from '@purser/protocol'
import { mustKnow } from '../check.ts'
import { checkEd25519 } from './ed25519.ts'
import { type Jwks, readJwks } from './keys.ts'

/**
 * The statement of a signed receipt: this payer paid for this resource. `network` is a CAIP-2 id, `issuedAt` a Unix second. Source: x402 extension
 * offer-and-receipt, section 5.
 */
export type ReceiptStatement = {
  readonly resourceUrl: string
  readonly network: string
  readonly payer: string
  readonly issuedAt: number
  /** Empty if no transaction was needed. */
  readonly transaction: string
}

/**
 * The reason why a receipt was not accepted. `keys-unusable` concerns the key set of the caller, all others the
 * receipt.
 */
export type ReceiptFault = 'receipt-malformed' | 'key-unknown' | 'signature-invalid' | 'keys-unusable'

/** The result of a check. `kid` names the signing key and `statement` is what it signed. */
export type ReceiptVerdict =
  | { readonly ok: true; readonly kid: string; readonly statement: ReceiptStatement }
  | { readonly ok: false; readonly fault: ReceiptFault }

/**
 * Checks a signed receipt (a JWS): of `payments.get`, or of the extension `offer-receipt` in a PAYMENT-RESPONSE header. The keys are those of the
 * service that signed it (`fetchKeys`). Uses no network. Never throws because of the receipt; throws if the engine has no Ed25519.
 *
 * @example
 * import { fetchKeys, verifyReceipt } from '@purser/sdk/seal'
 *
 * export async function hasPaid(receipt: string, payer: string): Promise<boolean> {
 *   const verdict = await verifyReceipt(receipt, { keys: await fetchKeys('https://pay.example.com') })
 *   return verdict.ok && verdict.statement.payer === payer
 * }
 */
export async function verifyReceipt(receipt: string, options: { readonly keys: Jwks }): Promise<ReceiptVerdict> {
  mustKnow(options, { keys: true }, 'The second argument')
  const trusted = readJwks(options.keys) ?? []
  if (trusted.length === 0) return { ok: false, fault: 'keys-unusable' }
  const jws = typeof receipt === 'string' ? parseJws(receipt) : undefined
  const statement = jws && readReceipt(jws.payload)
  if (jws === undefined || statement === undefined) return { ok: false, fault: 'receipt-malformed' }
  const { kid } = jws.header
  const short = kid.slice(kid.indexOf('#') + 1)
  const named = trusted.filter((key) => key.kid === kid || key.kid === short)
  if (named.length === 0) return { ok: false, fault: 'key-unknown' }
  for (const { x } of named) {
    const publicKey = decodeBase64Url(x)
    if (publicKey !== undefined && (await checkEd25519(publicKey, jws.signingInput, jws.signature)))
      return { ok: true, kid, statement }
  }
  return { ok: false, fault: 'signature-invalid' }
}

function readReceipt(payload: JsonObject): ReceiptStatement | undefined {
  const { version, resourceUrl, network, payer, issuedAt, transaction = '' } = payload
  if (version !== 1 || typeof resourceUrl !== 'string' || typeof network !== 'string') return undefined
  if (typeof payer !== 'string' || typeof issuedAt !== 'number' || typeof transaction !== 'string') return undefined
  return { resourceUrl, network, payer, issuedAt, transaction }
}
