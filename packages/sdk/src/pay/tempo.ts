import {
  attributionMemo,
  encodeTransferWithMemo,
  type Hex,
  type JsonObject,
  type MppChallenge,
  type Price,
  proofTypedData,
  type TempoChargeMode,
} from '@purser/protocol'
import { hexOf } from './authorization.ts'
import type { Payer } from './payer.ts'

/** The validity of a pull transaction. Chains accept an expiring nonce at most 30 seconds ahead (TIP-1009). */
const pullSecondsMax = 25

/** The payload of a Tempo credential, and when it expires. */
interface TempoPayload {
  readonly payload: JsonObject
  readonly validBeforeSeconds: number | undefined
}

/** A way for this signer to pay a charge. */
export interface TempoWay {
  readonly spendsOnSigning: boolean
  readonly sign: () => Promise<TempoPayload>
}

interface TempoCharge {
  readonly price: Price
  readonly challenge: MppChallenge
  readonly endSeconds: number
  readonly feePayer: boolean
  readonly modes: readonly TempoChargeMode[]
}

/**
 * Returns the way to pay a charge: a zero amount by proof, otherwise pull (the seller sends the transaction) before
 * push (the signer sends it), if the seller accepts it and the signer supports it. A sponsored charge cannot be pushed.
 * `undefined` if none is possible.
 */
export function tempoWayOf(payer: Payer, charge: TempoCharge): TempoWay | undefined {
  const { signTempoTransaction, sendTransaction } = payer.signer
  if (charge.price.rawAmount === 0n) return { spendsOnSigning: false, sign: () => signProof(payer, charge) }
  if (signTempoTransaction !== undefined && charge.modes.includes('pull')) {
    return { spendsOnSigning: false, sign: () => signPull(payer, charge) }
  }
  if (sendTransaction !== undefined && charge.modes.includes('push') && !charge.feePayer) {
    return { spendsOnSigning: true, sign: () => push(payer, charge) }
  }
  return undefined
}

async function signProof(payer: Payer, { price, challenge, endSeconds }: TempoCharge): Promise<TempoPayload> {
  const { chainId } = price.network
  const { id: challengeId, realm } = challenge
  const proof = proofTypedData({ chainId, account: payer.address, challengeId, realm })
  const signature = hexOf(await payer.signer.signTypedData(proof))
  return { payload: { type: 'proof', signature }, validBeforeSeconds: endSeconds }
}

async function signPull(payer: Payer, charge: TempoCharge): Promise<TempoPayload> {
  const validBeforeSeconds = Math.min(charge.endSeconds, Math.floor(payer.now() / 1_000) + pullSecondsMax)
  const { feePayer, price } = charge
  const { chainId } = price.network
  const calls = [transferOf(charge)]
  const signed = await payer.signer.signTempoTransaction?.({ chainId, calls, feePayer, validBeforeSeconds })
  return { payload: { type: 'transaction', signature: hexOf(signed) }, validBeforeSeconds }
}

async function push(payer: Payer, charge: TempoCharge): Promise<TempoPayload> {
  const hash = hexOf(
    await payer.signer.sendTransaction?.({ chainId: charge.price.network.chainId, ...transferOf(charge) }),
  )
  return { payload: { type: 'hash', hash }, validBeforeSeconds: undefined }
}

/** The transfer with the memo that binds it to the challenge. Without the memo, anyone could claim it. */
function transferOf({ price, challenge }: TempoCharge): { readonly to: Hex; readonly data: Hex } {
  const memo = attributionMemo({ realm: challenge.realm, challengeId: challenge.id })
  return { to: price.token.address, data: encodeTransferWithMemo(price.payTo, price.rawAmount, memo) }
}
