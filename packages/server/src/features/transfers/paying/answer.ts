import { bytesToHex, hexToBytes, networkByName, signedHeader, tokenBySymbol } from '@purser/protocol'
import { failPlatform } from '../../../platform/errors.ts'
import { id } from '../../../platform/ids.ts'
import { Reply } from '../../../platform/operation.ts'
import { approvalStates } from '../../approvals/index.ts'
import { createAccountSigners, signGasless } from '../../wallets/index.ts'
import { fail } from '../errors.ts'
import type { Ctx } from '../ports.ts'
import { findOwnTransfer, type TransferId, type TransferRow } from '../store.ts'
import { shown } from '../transfer.ts'
import { storePayment } from './pay.ts'
import type { ChallengePayment, WalletPayment } from './schema.ts'
import { findPayment, keepSignature, type PaymentRow } from './store.ts'

/** Pays a 402 from a managed wallet: stores the payment, signs it and returns the credential. 202 while it waits for an approval. */
export async function payChallenge(ctx: Ctx, request: ChallengePayment): Promise<WalletPayment | Reply> {
  const { isWaiting, isFetching: _, ...payment } = await paymentOf(ctx, await storePayment(ctx, request))
  return isWaiting ? new Reply(202, payment) : payment
}

/**
 * The present state of a payment, for a repeated request whose first response was never stored: the same credential, and what the seller
 * answered as far as it is known. 409 while the first request may still wait for the seller.
 */
export async function paymentState(ctx: Ctx, transferId: string): Promise<WalletPayment | Reply> {
  const { isWaiting, isFetching, ...payment } = await paymentOf(ctx, id('wtx').parse(transferId))
  if (isFetching) throw failPlatform('idempotency-in-progress')
  return isWaiting ? new Reply(202, payment) : payment
}

/** A payment as it is answered, with what decides about the answer. */
export type ShownPayment = WalletPayment & {
  readonly isWaiting: boolean
  /** The first request may still wait for the seller. */
  readonly isFetching: boolean
}

/** A stored payment with its credential, which is signed if nobody has signed it yet. */
export async function paymentOf(ctx: Ctx, transferId: TransferId): Promise<ShownPayment> {
  const row = await findOwnTransfer(ctx.db, ctx.tenant, transferId)
  const payment = await findPayment(ctx.db, ctx.tenant, transferId)
  if (row === undefined || payment === undefined) throw fail('transfer-not-found')
  const approval = (await approvalStates(ctx, [row])).get(row.approvalId) ?? null
  const { method, fetchUntil, responseStatus: status } = payment
  const credential = await credentialOf(ctx, row, payment)
  const outcome = payment.outcome ?? (fetchUntil === null ? null : 'unknown')
  const lost = { headers: null, body: null, bodyEncoding: 'text', isWhole: false, receipt: null } as const
  const response = status === null ? null : { status, ...lost }
  return {
    ...shown(row, approval),
    method,
    credential,
    outcome,
    response,
    isWaiting: approval?.status === 'waiting',
    isFetching: payment.outcome === null && fetchUntil !== null && fetchUntil > ctx.clock.now(),
  }
}

/** Signs if nobody has signed yet. A payment that ended without a signature stays without one. */
async function credentialOf(ctx: Ctx, row: TransferRow, payment: PaymentRow): Promise<WalletPayment['credential']> {
  const { draft, validBefore, signature } = payment
  if (draft === null || validBefore === null || (signature === null && row.endedAt !== null)) return null
  const bytes = signature ?? (await keepSignature(ctx.db, row.id, await signatureOf(ctx, row, { draft, validBefore })))
  return { ...signedHeader(draft, bytesToHex(bytes)), validBefore }
}

type Unsigned = { readonly [name in 'draft' | 'validBefore']: NonNullable<PaymentRow[name]> }

/** The wallet's signature, 65 bytes. Every signature of a payment is of the same stored message. */
async function signatureOf(ctx: Ctx, row: TransferRow, { draft, validBefore }: Unsigned): Promise<Uint8Array> {
  const network = networkByName(row.fromNetwork)
  const token = network === undefined ? undefined : tokenBySymbol(network, row.fromToken)
  const signer = await createAccountSigners(ctx)(row.fromAddress)
  if (network === undefined || token === undefined || signer === undefined) throw new Error('no signer for a payment')
  const { signature } = await signGasless(signer, network, {
    asset: token.address,
    fromAddress: row.fromAddress,
    toAddress: row.toAddress,
    rawAmount: row.rawAmount,
    nonce: hexToBytes(draft.authorization.nonce),
    validBefore,
  })
  if (signature.kind !== 'ecdsa') throw new Error('a wallet signs with its key')
  const { r, s, v } = signature
  return Uint8Array.from([...hexToBytes(r), ...hexToBytes(s), v])
}
