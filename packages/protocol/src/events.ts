/**
 * The event catalogue: every event type with its payload, once. From here come the types of `publish`, the payload schemas in
 * openapi.json, the SDK's `WebhookPayloads`, its check of a delivery, and the sample events of `purser trigger`.
 *
 * Amounts are decimals in whole tokens, `rawAmount` is in the token's smallest unit, times are ISO 8601 in UTC.
 */

import {
  absent,
  absentTime,
  address,
  type EventField,
  type EventFields,
  hash,
  id,
  integer,
  nullable,
  time,
  value,
} from './event-fields.ts'

export type { EventField, EventSample } from './event-fields.ts'

/** An event type: when it is published, and what its payload contains. */
export interface EventDefinition<F extends EventFields = EventFields> {
  readonly description: string
  readonly fields: F
}

const paymentOutcome = {
  paymentId: id('pay', 'The payment.'),
  walletId: nullable(id('byw', 'The wallet that receives the money; null for a payment by the facilitator API alone.')),
  amount: value('0.01', 'The amount in whole tokens.'),
  token: value('USDC', 'The symbol of the token.'),
  chain: value('base', 'The chain of the payment.'),
  payer: nullable(address('The address that pays; null where the protocol does not name it.')),
}

const transfer = {
  transactionId: id('wtx', 'The transfer.'),
  walletId: id('mwt', 'The wallet that sends.'),
  route: value('direct', '`direct`, `partner-swap` or `partner-bridge`.'),
}

const refund = {
  ...transfer,
  route: value('partner-bridge', '`partner-swap` or `partner-bridge`.'),
  amount: value('50', 'What left the wallet, in whole tokens of `token`.'),
  token: value('USDC', 'The symbol of the token that left the wallet.'),
  chain: value('base', 'The chain that the money left.'),
}

const approval = {
  approvalId: id('apr', 'The approval.'),
  kind: value('transfer', '`transfer`, `refund`, `payment` or `withdrawal`.'),
  transactionId: nullable(id('wtx', 'The transfer, also of a refund or of a payment of a 402; null for a withdrawal.')),
  withdrawalId: absent('The withdrawal; null for the other kinds.'),
  walletId: id('mwt', 'The wallet that would pay.'),
  amount: value('50', 'The amount in whole tokens.'),
  token: value('USDC', 'The symbol of the token.'),
  chain: value('base', 'The chain that the money would leave.'),
  to: address('The recipient: an address, or the id of a bank account.'),
  note: nullable(value('Invoice 1001', "The requester's reference; for a refund its reason.")),
  requestedBy: id('key', 'The API key or the account that made the request.'),
}

/** Every event type, in the order in which they are shown. */
export const eventCatalogue = {
  /** A payment was verified. */
  'payment.received': {
    description: 'A payment was verified.',
    fields: {
      ...paymentOutcome,
      protocol: value('x402', '`x402` or `mpp`.'),
      txHash: absent('The transaction; null until the payment is settled.'),
      route: nullable(value('https://api.example.com/forecast', 'The paid route; null where none was named.')),
      vaultId: absent('The vault that the payment opened; null where it opened none.'),
      receivedAt: time('When the payment was verified.'),
    },
  },
  /** The money of a payment has moved on chain. */
  'payment.settled': {
    description: 'The money of a payment has moved on chain.',
    fields: {
      ...paymentOutcome,
      txHash: nullable(hash('The transaction; null for a stub payment.')),
      settledAt: time('When the payment was settled.'),
    },
  },
  /** The money of a payment will not move. */
  'payment.settlement_failed': {
    description: 'The money of a payment will not move.',
    fields: {
      ...paymentOutcome,
      reason: value('insufficient_funds', 'The error code of the failure.'),
      failedAt: time('When the settlement failed.'),
    },
  },
  /** A refund of a payment is final on chain. */
  'payment.refunded': {
    description: 'A refund of a payment is final on chain. `transfer.failed` reports a refund that was not paid.',
    fields: {
      paymentId: id('pay', 'The payment.'),
      refundId: id('rfd', 'The refund.'),
      transferId: id('wtx', 'The transfer that paid it.'),
      amount: value('0.01', 'What this refund paid back, in whole tokens.'),
      totalRefunded: value('0.01', 'What all refunds of the payment take, including those under way, in whole tokens.'),
      token: value('USDC', 'The symbol of the token.'),
      chain: value('base', 'The chain of the payment.'),
      payer: address('The address that paid, and was paid back.'),
      reason: nullable(value('The response was lost.', 'The reason in the request; null where none was given.')),
      txHash: nullable(hash('The transaction of the transfer.')),
      refundedAt: time('When the refund was recorded as final.'),
    },
  },
  /** A vault was sealed and takes no more writes. */
  'vault.sealed': {
    description: 'A vault was sealed and takes no more writes.',
    fields: {
      vaultId: id('vlt', 'The vault.'),
      summary: value('Research done', 'The summary of the seal request; empty where none was given.'),
      sealedAt: time('When the vault was sealed.'),
      manifestHash: value(
        '6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b',
        'SHA-256 of the manifest, in hex.',
      ),
    },
  },
  /** A vault expires within the hour. */
  'vault.expiring': {
    description: 'A vault expires within the hour.',
    fields: { vaultId: id('vlt', 'The vault.'), expiresAt: time('When the vault expires.', 3_600) },
  },
  /** A vault has expired and is deleted. */
  'vault.expired': {
    description: 'A vault has expired and is deleted.',
    fields: { vaultId: id('vlt', 'The vault.'), expiredAt: time('When the vault expired.') },
  },
  /** The expiry of a vault was extended. */
  'vault.extended': {
    description: 'The expiry of a vault was moved.',
    fields: { vaultId: id('vlt', 'The vault.'), expiresAt: time('When the vault expires now.', 86_400) },
  },
  /** A vault no longer expires. */
  'vault.persisted': {
    description: 'A vault no longer expires.',
    fields: { vaultId: id('vlt', 'The vault.'), persistedAt: time('When the vault was persisted.') },
  },
  /** A deposit has as many confirmations as its chain requires. */
  'deposit.success': {
    description: 'A deposit has as many confirmations as its chain requires.',
    fields: {
      walletId: id('mwt', 'The wallet that received the deposit.'),
      txHash: hash('The transaction of the deposit.'),
      logIndex: integer(0, 'The index of the transfer log in the block.'),
      amount: value('25', 'The amount in whole tokens.'),
      rawAmount: value('25000000', "The amount in the token's smallest unit."),
      tokenSymbol: value('USDC', 'The symbol of the token.'),
      chain: value('base', 'The chain of the deposit.'),
      from: address('The sender.'),
      to: address("The wallet's address."),
      blockNumber: integer(12_345_678, 'The block of the deposit.'),
      confirmedAt: time('When the deposit was confirmed.'),
    },
  },
  /** Screening flagged a wallet, or the sender of a deposit. */
  'wallet.flagged': {
    description: 'Screening flagged a wallet, or the sender of a deposit.',
    fields: {
      walletId: id('mwt', 'The wallet.'),
      address: address('The address that screening flagged.'),
      transactionId: nullable(id('wtx', 'The deposit; null where the wallet itself is flagged.')),
      reason: value('listed', 'Why the address is flagged.'),
      flaggedAt: time('When the address was flagged.'),
    },
  },
  /** Screening removed a flag. */
  'wallet.cleared': {
    description: 'Screening removed a flag.',
    fields: {
      walletId: id('mwt', 'The wallet.'),
      address: address('The address that screening cleared.'),
      transactionId: nullable(id('wtx', 'The deposit; null where the wallet itself was flagged.')),
      clearedAt: time('When the flag was removed.'),
    },
  },
  /** A transfer has arrived. */
  'transfer.completed': {
    description: 'A transfer has arrived.',
    fields: {
      ...transfer,
      fromChain: value('base', 'The chain that the money left.'),
      toChain: value('base', 'The chain that the money arrived on.'),
      amount: value('5', 'What left the wallet, in whole tokens of `fromToken`.'),
      fromToken: value('USDC', 'The token that left the wallet.'),
      toToken: value('USDC', 'The token that was requested.'),
      toAmount: value('5', 'What arrived, in whole tokens of `toToken`, or of `receivedToken` where that is set.'),
      receivedToken: absent('The token that a partner delivered in place of `toToken`; null otherwise.'),
      destinationTxHash: absent('The transaction on the destination chain of a bridge; null otherwise.'),
      txHash: hash('The transaction that left the wallet.'),
      confirmedAt: time('When the transfer was confirmed.'),
    },
  },
  /** A transfer has failed. The money is in the wallet, unless the reason is `not-received`. */
  'transfer.failed': {
    description:
      'A transfer has failed. The money is in the wallet, except with the reason `not-received`: it left the wallet and did not arrive at the recipient.',
    fields: {
      ...transfer,
      reason: value('reverted', 'The error code of the failure.'),
      refundTxHash: absent('The transaction of the refund; null if nothing was refunded.'),
      refundedAt: absentTime('When the refund arrived; null if nothing was refunded.'),
    },
  },
  /** A partner failed 72 hours ago and no refund was seen. The transfer is still pending: do not send the money again. */
  'transfer.refund_overdue': {
    description:
      'A partner failed 72 hours ago and no refund was seen. The transfer is still pending: do not send the money again.',
    fields: {
      ...refund,
      txHash: nullable(hash('The transaction that left the wallet.')),
      failingSince: time('When the partner failed.', -259_200),
    },
  },
  /** Money left a day ago and did not arrive. The transfer is still pending: do not send the money again. */
  'transfer.delivery_overdue': {
    description: 'Money left a day ago and did not arrive. The transfer is still pending: do not send the money again.',
    fields: {
      ...refund,
      txHash: nullable(hash('The transaction that left the wallet.')),
      leftAt: time('When the money left.', -86_400),
    },
  },
  /** The money of an overdue refund is back. `transfer.failed` is published with it. */
  'transfer.refunded': {
    description: 'The money of an overdue refund is back. `transfer.failed` is published with it.',
    fields: {
      ...refund,
      refundTxHash: nullable(hash('The transaction of the refund.')),
      refundedAt: time('When the refund arrived.'),
    },
  },
  /** A movement above a policy's `approvalAbove` waits for a person. */
  'approval.requested': {
    description: "A movement above a policy's `approvalAbove` waits for a person.",
    fields: {
      ...approval,
      approvalAbove: value('20', 'The limit that the amount exceeds, in whole tokens.'),
      expiresAt: time('When the request expires.', 86_400),
      requestedAt: time('When the request was made.'),
    },
  },
  /** A person approved a movement. It begins now. */
  'approval.granted': {
    description: 'A person approved a movement. It begins now.',
    fields: {
      ...approval,
      decidedBy: id('acc', 'The account that approved it.'),
      grantedAt: time('When it was approved.'),
    },
  },
  /** A movement that waited for an approval will not happen. */
  'approval.refused': {
    description: 'A movement that waited for an approval will not happen.',
    fields: {
      ...approval,
      status: value('refused', '`refused`, `canceled` or `expired`.'),
      decidedBy: nullable(
        id('acc', 'The account that refused it, or the requester that canceled it; null for an expiry.'),
      ),
      reason: absent("The person's reason; null where none was given."),
      refusedAt: time('When it was refused, was canceled or expired.'),
    },
  },
  /** A withdrawal progressed (`conversion_complete`), or the `refund` of a failed one changed. */
  'withdrawal.updated': {
    description: 'A withdrawal progressed (`conversion_complete`), or the `refund` of a failed one changed.',
    fields: {
      withdrawalId: id('wdr', 'The withdrawal.'),
      walletId: id('mwt', 'The wallet that the money left.'),
      status: value('conversion_complete', 'The new status.'),
      refund: absent('`done` where the partner reports that it sent the tokens back.'),
      updatedAt: time('When the withdrawal was updated.'),
    },
  },
  /** The wire has arrived at the bank. */
  'withdrawal.completed': {
    description: 'The wire has arrived at the bank.',
    fields: {
      withdrawalId: id('wdr', 'The withdrawal.'),
      walletId: id('mwt', 'The wallet that the money left.'),
      amount: value('100', 'The amount in whole tokens.'),
      token: value('USDC', 'The symbol of the token.'),
      reference: nullable(value('Invoice 1001', "The caller's reference; null where none was given.")),
      completedAt: time('When the withdrawal was completed.'),
    },
  },
  /** A withdrawal has failed. */
  'withdrawal.failed': {
    description: 'A withdrawal has failed.',
    fields: {
      withdrawalId: id('wdr', 'The withdrawal.'),
      reason: value('partner-refused', 'The error code of the failure.'),
      failedAt: time('When the withdrawal failed.'),
    },
  },
  /** 80 or 100 % of a quota is used. Published once for each calendar month (UTC), kind and percentage. */
  'usage.threshold': {
    description: '80 or 100 % of a quota is used. Published once for each calendar month (UTC), kind and percentage.',
    fields: {
      kind: value('payments', 'The quota: a member of `billing.usage`.'),
      percent: integer(80, '80 or 100.'),
      used: integer(8_000, 'What is used.'),
      limit: integer(10_000, 'What the plan allows.'),
      month: value('2026-11', 'The calendar month (UTC).'),
      reachedAt: time('When the threshold was reached.'),
    },
  },
  /** An account was invited to the organisation. */
  'member.invited': {
    description: 'An account was invited to the organisation.',
    fields: {
      accountId: id('acc', 'The account.'),
      email: nullable(value('agent@example.com', 'The address that was invited; null for an invitation by account.')),
      role: value('member', 'The role of the invitation.'),
      invitedAt: time('When the account was invited.'),
    },
  },
  /** An endpoint failed for five days and receives nothing until it is enabled again. */
  'webhook.disabled': {
    description: 'An endpoint failed for five days and receives nothing until it is enabled again.',
    fields: { webhookId: id('wh', 'The webhook.'), disabledAt: time('When the webhook was disabled.') },
  },
  /** A test delivery, sent on request. */
  'webhook.test': {
    description: 'A test delivery, sent on request.',
    fields: { webhookId: id('wh', 'The webhook.') },
  },
} as const satisfies Readonly<Record<string, EventDefinition>>

/** The name of an event type, such as `payment.settled`. */
export type EventType = keyof typeof eventCatalogue

type ValueOf<F> = F extends EventField<infer T> ? T : never
type PayloadOf<F> = { readonly [M in keyof F]: ValueOf<F[M]> }

/** The payload of each event type. */
export type EventPayloads = { readonly [T in EventType]: PayloadOf<(typeof eventCatalogue)[T]['fields']> }

/** Every event type, in the order of the catalogue. */
export const eventTypes: readonly EventType[] = Object.keys(eventCatalogue).filter(isEventType)

/**
 * Whether this version knows the event type.
 *
 * @example
 * isEventType('payment.settled') // true
 */
export function isEventType(type: string): type is EventType {
  return Object.hasOwn(eventCatalogue, type)
}

/**
 * Returns the first member of a payload that is missing or of the wrong type, or undefined where the payload matches its event
 * type. Further members are allowed: later versions of the service may add some.
 *
 * @example
 * findPayloadFault('vault.sealed', {}) // 'vaultId'
 */
export function findPayloadFault(type: EventType, payload: Readonly<Record<string, unknown>>): string | undefined {
  const fields: EventFields = eventCatalogue[type].fields
  return Object.keys(fields).find((name) => !isOfField(payload[name], fields[name]))
}

function isOfField(member: unknown, field: EventFields[string] | undefined): boolean {
  if (field?.type === 'integer') return Number.isSafeInteger(member)
  return typeof member === 'string' || (field?.isNullable === true && member === null)
}
