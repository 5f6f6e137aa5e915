import { z } from 'zod'

const Text = z.string()
const Time = z.iso.datetime()

const outcome = {
  paymentId: Text,
  walletId: Text.nullable(),
  amount: Text,
  token: Text,
  chain: Text,
  payer: Text.nullable(),
}

const owed = { transactionId: Text, walletId: Text, route: Text, amount: Text, token: Text, chain: Text }

/**
 * What the payload of each event type holds, as the document and decisions.md have it: amounts are decimals in whole tokens, times
 * ISO 8601 in UTC. They describe what rooms publish; members may be added.
 */
export const eventPayloads = {
  'payment.received': z.object({
    ...outcome,
    protocol: Text,
    txHash: Text.nullable(),
    route: Text.nullable(),
    vaultId: Text.nullable(),
    receivedAt: Time,
  }),
  'payment.settled': z.object({ ...outcome, txHash: Text.nullable(), settledAt: Time }),
  'payment.settlement_failed': z.object({ ...outcome, reason: Text, failedAt: Time }),
  'vault.sealed': z.object({ vaultId: Text, summary: Text, sealedAt: Time, manifestHash: Text }),
  'vault.expiring': z.object({ vaultId: Text, expiresAt: Time }),
  'vault.expired': z.object({ vaultId: Text, expiredAt: Time }),
  'vault.extended': z.object({ vaultId: Text, expiresAt: Time }),
  'vault.persisted': z.object({ vaultId: Text, persistedAt: Time }),
  'deposit.success': z.object({
    walletId: Text,
    txHash: Text,
    logIndex: z.int(),
    amount: Text,
    rawAmount: Text,
    tokenSymbol: Text,
    chain: Text,
    from: Text,
    to: Text,
    blockNumber: z.int(),
    confirmedAt: Time,
  }),
  'wallet.flagged': z.object({
    walletId: Text,
    address: Text,
    transactionId: Text.nullable(),
    reason: Text,
    flaggedAt: Time,
  }),
  'wallet.cleared': z.object({ walletId: Text, address: Text, transactionId: Text.nullable(), clearedAt: Time }),
  'transfer.completed': z.object({
    transactionId: Text,
    walletId: Text,
    route: Text,
    fromChain: Text,
    toChain: Text,
    amount: Text,
    fromToken: Text,
    toToken: Text,
    toAmount: Text,
    receivedToken: Text.nullable(),
    destinationTxHash: Text.nullable(),
    txHash: Text,
    confirmedAt: Time,
  }),
  'transfer.failed': z.object({
    transactionId: Text,
    walletId: Text,
    route: Text,
    reason: Text,
    refundTxHash: Text.nullable(),
    refundedAt: Time.nullable(),
  }),
  'transfer.refund_overdue': z.object({ ...owed, txHash: Text.nullable(), failingSince: Time }),
  'transfer.refunded': z.object({ ...owed, refundTxHash: Text.nullable(), refundedAt: Time }),
  'withdrawal.updated': z.object({
    withdrawalId: Text,
    walletId: Text,
    status: Text,
    refund: Text.nullable(),
    updatedAt: Time,
  }),
  'withdrawal.completed': z.object({
    withdrawalId: Text,
    walletId: Text,
    amount: Text,
    token: Text,
    reference: Text.nullable(),
    completedAt: Time,
  }),
  'withdrawal.failed': z.object({ withdrawalId: Text, reason: Text, failedAt: Time }),
  'usage.threshold': z.object({
    kind: Text,
    percent: z.int(),
    used: z.int(),
    limit: z.int(),
    month: Text,
    reachedAt: Time,
  }),
  'member.invited': z.object({ accountId: Text, email: Text, role: Text, invitedAt: Time }),
  'webhook.disabled': z.object({ webhookId: Text, disabledAt: Time }),
  'webhook.test': z.object({ webhookId: Text }),
} as const

export type EventType = keyof typeof eventPayloads

/** Every event type, in the order in which they are shown. */
export const eventTypes = Object.keys(eventPayloads)

/** What stands for every type, of now and of later. */
export const allEvents = '*'
