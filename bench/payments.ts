import { randomBytes } from 'node:crypto'
import {
  type Address,
  addressOfPublicKey,
  bytesToHex,
  checksumAddress,
  domainSeparator,
  encodePayment,
  type Hex,
  type Network,
  type PaymentPayloadV2,
  type PaymentRequirementsV2,
  requirementsV2,
  type TokenInfo,
  transferWithAuthorizationDigest,
  type WireAuthorization,
} from '@purser/protocol'
import secp256k1 from 'secp256k1'

export interface Payer {
  readonly address: Address
  readonly privateKey: Uint8Array
}

/** The terms of every payment of a benchmark: one price, one token, one receiver. */
export interface Bill {
  readonly network: Network
  readonly token: TokenInfo
  readonly payTo: Address
  readonly rawAmount: bigint
}

/** A payment for both sides: as a header for our service, and as an object for the official facilitator. */
export interface SignedPayment {
  readonly payer: Address
  readonly nonce: Hex
  readonly payload: PaymentPayloadV2
  readonly credential: string
}

export const resource = 'https://api.example.com/reports/daily'

const validSeconds = 3_600

/** Creates payer accounts without funds. */
export function createPayers(count: number): Payer[] {
  return Array.from({ length: count }, () => {
    const privateKey = new Uint8Array(randomBytes(32))
    if (!secp256k1.privateKeyVerify(privateKey)) throw new Error('32 random bytes were no private key')
    const publicKey = secp256k1.publicKeyCreate(privateKey, false)
    const address = addressOfPublicKey(publicKey)
    if (address === undefined) throw new Error('a public key was none')
    return { address: checksumAddress(address), privateKey }
  })
}

/** The x402 v2 payment requirements of the payments. */
export function requirementsOf(bill: Bill): PaymentRequirementsV2 {
  return requirementsV2({
    ...bill,
    resource,
    description: 'Daily report',
    mimeType: 'application/json',
    maxTimeoutSeconds: 60,
  })
}

/** Signs payments of a bill, each with a nonce of its own, taking turns among the payers. */
export function signPayments(payers: readonly Payer[], bill: Bill, count: number): SignedPayment[] {
  const accepted = requirementsOf(bill)
  const nonces = Array.from({ length: count }, () => bytesToHex(randomBytes(32)))
  return signAuthorizations(payers, bill, nonces).map(({ payer, authorization, signature }) => {
    const payload: PaymentPayloadV2 = {
      x402Version: 2,
      resource: { url: resource },
      accepted,
      payload: { signature, authorization },
    }
    return { payer, nonce: authorization.nonce, payload, credential: encodePayment(payload) }
  })
}

export interface SignedAuthorization {
  readonly payer: Address
  readonly authorization: WireAuthorization
  readonly signature: Hex
}

/** Signs one EIP-3009 authorization of a bill for each nonce, taking turns among the payers. */
export function signAuthorizations(
  payers: readonly Payer[],
  bill: Bill,
  nonces: readonly Hex[],
): SignedAuthorization[] {
  const { network, token } = bill
  if (token.eip712 === null) throw new Error(`${token.symbol} cannot be paid by a signature`)
  const separator = domainSeparator({ ...token.eip712, chainId: network.chainId, verifyingContract: token.address })
  const now = Math.floor(Date.now() / 1_000)
  const window = { validAfter: BigInt(now - 600), validBefore: BigInt(now + validSeconds) }
  return nonces.map((nonce, index) => {
    const payer = payers[index % payers.length]
    if (payer === undefined) throw new Error('there are no payers')
    return signAuthorization(payer, { bill, separator, window, nonce })
  })
}

interface Terms {
  readonly bill: Bill
  readonly separator: Uint8Array
  readonly window: { readonly validAfter: bigint; readonly validBefore: bigint }
  readonly nonce: Hex
}

function signAuthorization(payer: Payer, { bill, separator, window, nonce }: Terms): SignedAuthorization {
  const fields = { from: payer.address, to: bill.payTo, value: bill.rawAmount, nonce, ...window }
  const { signature, recid } = secp256k1.ecdsaSign(transferWithAuthorizationDigest(separator, fields), payer.privateKey)
  const authorization = {
    from: payer.address,
    to: bill.payTo,
    value: bill.rawAmount.toString(),
    validAfter: window.validAfter.toString(),
    validBefore: window.validBefore.toString(),
    nonce,
  }
  return { payer: payer.address, authorization, signature: `${bytesToHex(signature)}${recid === 0 ? '1b' : '1c'}` }
}
