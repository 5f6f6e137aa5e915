import type { z } from 'zod'
import { instantOf } from '../../../platform/clock.ts'
import type { Deps } from '../../../platform/ctx.ts'
import { type IdPrefix, newId } from '../../../platform/ids.ts'
import { type EventType, type eventPayloads, eventTypes } from '../event-types.ts'
import type { EventSamples } from './schema.ts'

type Payload<T extends EventType> = z.input<(typeof eventPayloads)[T]>

/** What a made-up payload draws from: fresh ids and the time, so that receivers which keep ids take each for new. */
interface Source {
  readonly id: (prefix: IdPrefix) => string
  readonly hash: () => string
  readonly address: () => string
  /** ISO 8601, so many seconds from now. */
  readonly at: (seconds?: number) => string
}

const outcome = (of: Source) => ({
  paymentId: of.id('pay'),
  walletId: of.id('byw'),
  amount: '0.01',
  token: 'USDC',
  chain: 'base',
  payer: of.address(),
})

const transfer = (of: Source) => ({ transactionId: of.id('wtx'), walletId: of.id('mwt'), route: 'direct' })

const owed = (of: Source) => ({
  ...transfer(of),
  route: 'partner-bridge',
  amount: '50',
  token: 'USDC',
  chain: 'base',
})

/** A payload of each type, as the service would send it. */
const samples: { readonly [T in EventType]: (of: Source) => Payload<T> } = {
  'payment.received': (of) => ({
    ...outcome(of),
    protocol: 'x402',
    txHash: null,
    route: 'https://api.example.com/forecast',
    vaultId: null,
    receivedAt: of.at(),
  }),
  'payment.settled': (of) => ({ ...outcome(of), txHash: of.hash(), settledAt: of.at() }),
  'payment.settlement_failed': (of) => ({ ...outcome(of), reason: 'insufficient_funds', failedAt: of.at() }),
  'vault.sealed': (of) => ({
    vaultId: of.id('vlt'),
    summary: 'Research done',
    sealedAt: of.at(),
    manifestHash: of.hash().slice(2),
  }),
  'vault.expiring': (of) => ({ vaultId: of.id('vlt'), expiresAt: of.at(3_600) }),
  'vault.expired': (of) => ({ vaultId: of.id('vlt'), expiredAt: of.at() }),
  'vault.extended': (of) => ({ vaultId: of.id('vlt'), expiresAt: of.at(86_400) }),
  'vault.persisted': (of) => ({ vaultId: of.id('vlt'), persistedAt: of.at() }),
  'deposit.success': (of) => ({
    walletId: of.id('mwt'),
    txHash: of.hash(),
    logIndex: 0,
    amount: '25',
    rawAmount: '25000000',
    tokenSymbol: 'USDC',
    chain: 'base',
    from: of.address(),
    to: of.address(),
    blockNumber: 12_345_678,
    confirmedAt: of.at(),
  }),
  'wallet.flagged': (of) => ({
    walletId: of.id('mwt'),
    address: of.address(),
    transactionId: of.id('wtx'),
    reason: 'listed',
    flaggedAt: of.at(),
  }),
  'wallet.cleared': (of) => ({
    walletId: of.id('mwt'),
    address: of.address(),
    transactionId: of.id('wtx'),
    clearedAt: of.at(),
  }),
  'transfer.completed': (of) => ({
    ...transfer(of),
    fromChain: 'base',
    toChain: 'base',
    amount: '5',
    fromToken: 'USDC',
    toToken: 'USDC',
    toAmount: '5',
    receivedToken: null,
    destinationTxHash: null,
    txHash: of.hash(),
    confirmedAt: of.at(),
  }),
  'transfer.failed': (of) => ({
    ...transfer(of),
    reason: 'reverted',
    refundTxHash: null,
    refundedAt: null,
  }),
  'transfer.refund_overdue': (of) => ({ ...owed(of), txHash: of.hash(), failingSince: of.at(-259_200) }),
  'transfer.refunded': (of) => ({ ...owed(of), refundTxHash: of.hash(), refundedAt: of.at() }),
  'withdrawal.updated': (of) => ({
    withdrawalId: of.id('wdr'),
    walletId: of.id('mwt'),
    status: 'conversion_complete',
    refund: null,
    updatedAt: of.at(),
  }),
  'withdrawal.completed': (of) => ({
    withdrawalId: of.id('wdr'),
    walletId: of.id('mwt'),
    amount: '100',
    token: 'USDC',
    reference: 'Invoice 1001',
    completedAt: of.at(),
  }),
  'withdrawal.failed': (of) => ({ withdrawalId: of.id('wdr'), reason: 'partner-refused', failedAt: of.at() }),
  'usage.threshold': (of) => ({
    kind: 'payments',
    percent: 80,
    used: 8_000,
    limit: 10_000,
    month: of.at().slice(0, 7),
    reachedAt: of.at(),
  }),
  'member.invited': (of) => ({
    accountId: of.id('acc'),
    email: 'agent@example.com',
    role: 'member',
    invitedAt: of.at(),
  }),
  'webhook.disabled': (of) => ({ webhookId: of.id('wh'), disabledAt: of.at() }),
  'webhook.test': (of) => ({ webhookId: of.id('wh') }),
}

/** A made-up payload of a type. Throws for a type that does not exist. */
export function samplePayload(type: string, deps: Pick<Deps, 'clock' | 'random'>): Readonly<Record<string, unknown>> {
  if (!isEventType(type)) throw new TypeError('there is no such event type')
  return samples[type](sourceOf(deps))
}

/** One payload of each type. */
export function eventSamples(deps: Pick<Deps, 'clock' | 'random'>): EventSamples {
  return { types: eventTypes.map((type) => ({ type, payload: samplePayload(type, deps) })) }
}

function isEventType(type: string): type is EventType {
  return Object.hasOwn(samples, type)
}

function sourceOf(deps: Pick<Deps, 'clock' | 'random'>): Source {
  const hex = (bytes: number): string => `0x${Buffer.from(deps.random.bytes(bytes)).toString('hex')}`
  return {
    id: (prefix) => newId(prefix, deps),
    hash: () => hex(32),
    address: () => hex(20),
    at: (seconds = 0) => instantOf(deps.clock.now().getTime() + seconds * 1_000).toISOString(),
  }
}
