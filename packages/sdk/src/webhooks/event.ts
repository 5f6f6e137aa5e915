import { isRecord } from '../problem.ts'
import type { WebhookEventType, WebhookPayloads } from './payloads.ts'

/** An event of a type that this version knows; `type` tells which payload it has. */
export type KnownWebhookEvent = {
  readonly [T in WebhookEventType]: { readonly eventId: string; readonly type: T; readonly payload: WebhookPayloads[T] }
}[WebhookEventType]

/**
 * An event of a type that came after this version. It was sent by the service as much as the others: answer 2xx, or it comes
 * again for a day and more.
 */
export type UnrecognizedWebhookEvent = {
  readonly eventId: string
  readonly type: 'unrecognized'
  /** The type as it was sent. */
  readonly sentType: string
  readonly payload: Readonly<Record<string, unknown>>
}

/** What a delivery tells. A delivery may come more than once; `eventId` is the same each time. */
export type WebhookEvent = KnownWebhookEvent | UnrecognizedWebhookEvent

type Kind = 'text' | 'text or null' | 'integer'

type Sent = { readonly eventId: string; readonly type: string; readonly payload: Readonly<Record<string, unknown>> }

const ofOutcome = {
  paymentId: 'text',
  walletId: 'text or null',
  amount: 'text',
  token: 'text',
  chain: 'text',
  payer: 'text or null',
} as const

const ofTransfer = { transactionId: 'text', walletId: 'text', route: 'text' } as const

const ofOwed = { ...ofTransfer, amount: 'text', token: 'text', chain: 'text' } as const

/** What each payload must have for its type to be true; more may be there. */
const members: { readonly [T in WebhookEventType]: { readonly [M in keyof WebhookPayloads[T]]-?: Kind } } = {
  'payment.received': {
    ...ofOutcome,
    protocol: 'text',
    txHash: 'text or null',
    route: 'text or null',
    vaultId: 'text or null',
    receivedAt: 'text',
  },
  'payment.settled': { ...ofOutcome, txHash: 'text or null', settledAt: 'text' },
  'payment.settlement_failed': { ...ofOutcome, reason: 'text', failedAt: 'text' },
  'vault.sealed': { vaultId: 'text', summary: 'text', sealedAt: 'text', manifestHash: 'text' },
  'vault.expiring': { vaultId: 'text', expiresAt: 'text' },
  'vault.expired': { vaultId: 'text', expiredAt: 'text' },
  'vault.extended': { vaultId: 'text', expiresAt: 'text' },
  'vault.persisted': { vaultId: 'text', persistedAt: 'text' },
  'deposit.success': {
    walletId: 'text',
    txHash: 'text',
    logIndex: 'integer',
    amount: 'text',
    rawAmount: 'text',
    tokenSymbol: 'text',
    chain: 'text',
    from: 'text',
    to: 'text',
    blockNumber: 'integer',
    confirmedAt: 'text',
  },
  'wallet.flagged': {
    walletId: 'text',
    address: 'text',
    transactionId: 'text or null',
    reason: 'text',
    flaggedAt: 'text',
  },
  'wallet.cleared': { walletId: 'text', address: 'text', transactionId: 'text or null', clearedAt: 'text' },
  'transfer.completed': {
    ...ofTransfer,
    fromChain: 'text',
    toChain: 'text',
    amount: 'text',
    fromToken: 'text',
    toToken: 'text',
    toAmount: 'text',
    receivedToken: 'text or null',
    destinationTxHash: 'text or null',
    txHash: 'text',
    confirmedAt: 'text',
  },
  'transfer.failed': { ...ofTransfer, reason: 'text', refundTxHash: 'text or null', refundedAt: 'text or null' },
  'transfer.refund_overdue': { ...ofOwed, txHash: 'text or null', failingSince: 'text' },
  'transfer.refunded': { ...ofOwed, refundTxHash: 'text or null', refundedAt: 'text' },
  'withdrawal.updated': {
    withdrawalId: 'text',
    walletId: 'text',
    status: 'text',
    refund: 'text or null',
    updatedAt: 'text',
  },
  'withdrawal.completed': {
    withdrawalId: 'text',
    walletId: 'text',
    amount: 'text',
    token: 'text',
    reference: 'text or null',
    completedAt: 'text',
  },
  'withdrawal.failed': { withdrawalId: 'text', reason: 'text', failedAt: 'text' },
  'usage.threshold': {
    kind: 'text',
    percent: 'integer',
    used: 'integer',
    limit: 'integer',
    month: 'text',
    reachedAt: 'text',
  },
  'member.invited': { accountId: 'text', email: 'text', role: 'text', invitedAt: 'text' },
  'webhook.disabled': { webhookId: 'text', disabledAt: 'text' },
  'webhook.test': { webhookId: 'text' },
}

/** Every type that this version knows. */
export const webhookEventTypes: readonly string[] = Object.keys(members)

/**
 * The event in a delivery's parsed body, or the JSON Pointer to what is missing or of another kind than its type promises (empty
 * for the body as a whole).
 */
export function readWebhookEvent(body: unknown): WebhookEvent | { readonly faultAt: string } {
  if (!isRecord(body)) return { faultAt: '' }
  const { eventId, type, payload } = body
  if (typeof eventId !== 'string' || eventId === '') return { faultAt: '/eventId' }
  if (typeof type !== 'string' || type === '') return { faultAt: '/type' }
  if (!isRecord(payload)) return { faultAt: '/payload' }
  if (!isKnownType(type)) return { eventId, type: 'unrecognized', sentType: type, payload }
  const sent = { eventId, type, payload }
  return isKnown(sent) ? sent : { faultAt: `/payload/${faultyMember(type, payload)}` }
}

function isKnownType(type: string): type is WebhookEventType {
  return Object.hasOwn(members, type)
}

function isKnown(sent: Sent): sent is KnownWebhookEvent {
  return isKnownType(sent.type) && faultyMember(sent.type, sent.payload) === undefined
}

function faultyMember(type: WebhookEventType, payload: Sent['payload']): string | undefined {
  return Object.entries<Kind>(members[type]).find(([name, kind]) => !isOfKind(payload[name], kind))?.[0]
}

function isOfKind(value: unknown, kind: Kind): boolean {
  if (kind === 'integer') return Number.isSafeInteger(value)
  return typeof value === 'string' || (kind === 'text or null' && value === null)
}
