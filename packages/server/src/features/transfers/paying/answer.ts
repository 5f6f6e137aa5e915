import { bytesToHex, hexToBytes, networkByName, signedHeader, tokenBySymbol } from '@purser/protocol'
import type { Ctx } from '../../../platform/ctx.ts'
import { id } from '../../../platform/ids.ts'
import { Reply } from '../../../platform/operation.ts'
import { approvalStates } from '../../approvals/index.ts'
import { createAccountSigners, signGasless } from '../../wallets/index.ts'
import { fail } from '../errors.ts'
import { findOwnTransfer, type TransferId, type TransferRow } from '../store.ts'
import { shown } from '../transfer.ts'
import { storePayment } from './pay.ts'
import type { NewWalletPayment, WalletPayment } from './schema.ts'
import { findPayment, keepSignature, type PaymentRow } from './store.ts'

/** Pays a 402 from a managed wallet: stores the payment, signs it and returns the credential. 202 while it waits for an approval. */
export async function payChallenge(ctx: Ctx, request: NewWalletPayment): Promise<WalletPayment | Reply> {
  return answer(ctx, await storePayment(ctx, request))
}

/** The present state of a payment, for a repeated request whose first response was never stored: the same credential. */
export function paymentState(ctx: Ctx, transferId: string): Promise<WalletPayment | Reply> {
  return answer(ctx, id('wtx').parse(transferId))
}

async function answer(ctx: Ctx, transferId: TransferId): Promise<WalletPayment | Reply> {
  const row = await findOwnTransfer(ctx.db, ctx.tenant, transferId)
  const payment = await findPayment(ctx.db, ctx.tenant, transferId)
  if (row === undefined || payment === undefined) throw fail('transfer-not-found')
  const approval = (await approvalStates(ctx, [row])).get(row.approvalId) ?? null
  const credential = await credentialOf(ctx, row, payment)
  const body = { ...shown(row, approval), method: payment.method, credential }
  return approval?.status === 'waiting' ? new Reply(202, body) : body
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
