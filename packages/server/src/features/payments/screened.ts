import type { Address } from '@purser/protocol'
import { failWallet, type ReceivingWallet } from '../wallets/index.ts'
import { refused } from './credential.ts'
import { refusedMpp } from './mpp/refused.ts'
import type { Ctx } from './ports.ts'
import type { NewPayment } from './store.ts'

/**
 * Refuses a payment whose payer or receiver is sanctioned, with the protocol's own refusal. It reads only memory. If screening is
 * unavailable, the payment is accepted and deposit screening puts its proceeds on hold.
 */
export function refuseSanctioned(
  ctx: Pick<Ctx, 'screening' | 'tenant'>,
  payment: Pick<NewPayment, 'protocol' | 'payer' | 'payTo'>,
): void {
  const reason = sanctionedReason(ctx, payment)
  if (reason !== undefined) throw refusal(payment, reason, messages[reason])
}

const messages = {
  invalid_payment_requirements: 'payTo is sanctioned',
  payer_sanctioned: 'the payer is sanctioned',
} as const

/** Returns x402's reason if the receiver or the payer is sanctioned, otherwise undefined. It reads only memory. */
export function sanctionedReason(
  ctx: Pick<Ctx, 'screening' | 'tenant'>,
  { payer, payTo }: Pick<NewPayment, 'payer' | 'payTo'>,
): keyof typeof messages | undefined {
  if (isFlagged(ctx, payTo)) return 'invalid_payment_requirements'
  return payer !== null && isFlagged(ctx, payer) ? 'payer_sanctioned' : undefined
}

/**
 * Throws `wallet-flagged` if a receiver is sanctioned. A wallet's own screening follows the list later, and the payer of a challenge may send the money
 * before anything is verified. It reads only memory.
 */
export function refuseSanctionedReceivers(
  ctx: Pick<Ctx, 'screening' | 'tenant'>,
  wallets: readonly Pick<ReceivingWallet, 'address'>[],
): void {
  if (wallets.some(({ address }) => isFlagged(ctx, address))) throw failWallet('wallet-flagged')
}

function isFlagged({ screening, tenant }: Pick<Ctx, 'screening' | 'tenant'>, account: string): boolean {
  const address: Address = `0x${account.slice(2)}`
  return screening.screenNow(address, tenant.environment).result === 'flagged'
}

function refusal(
  { protocol, payer }: Pick<NewPayment, 'protocol' | 'payer'>,
  reason: 'invalid_payment_requirements' | 'payer_sanctioned',
  message: string,
): Error {
  const members = payer === null ? {} : { payer }
  if (protocol === 'mpp') return refusedMpp('verification-failed', `The payment was refused: ${message}.`, members)
  return refused(reason, { message, ...members })
}
