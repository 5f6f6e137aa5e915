/** Amounts are decimals in whole tokens, `rawAmount` in the token's smallest unit, times ISO 8601 in UTC, as everywhere in the API. */
export type WebhookPayloads = {
  /** A payment was verified. `walletId`, `route` and `vaultId` are null where there is none, `txHash` until it is settled. */
  readonly 'payment.received': {
    readonly paymentId: string
    readonly walletId: string | null
    readonly amount: string
    readonly token: string
    readonly chain: string
    readonly protocol: string
    readonly payer: string | null
    readonly txHash: string | null
    readonly route: string | null
    readonly vaultId: string | null
    readonly receivedAt: string
  }
  /** The money of a payment has moved on chain. */
  readonly 'payment.settled': PaymentOutcome & { readonly txHash: string | null; readonly settledAt: string }
  /** The money of a payment will not move: what it bought was not paid for. */
  readonly 'payment.settlement_failed': PaymentOutcome & { readonly reason: string; readonly failedAt: string }
  /** A vault takes no more writes. `summary` is empty when none was given; `manifestHash` is SHA-256 in hex. */
  readonly 'vault.sealed': {
    readonly vaultId: string
    readonly summary: string
    readonly sealedAt: string
    readonly manifestHash: string
  }
  /** A vault will end within the hour. */
  readonly 'vault.expiring': { readonly vaultId: string; readonly expiresAt: string }
  /** A vault has ended and is deleted. */
  readonly 'vault.expired': { readonly vaultId: string; readonly expiredAt: string }
  /** A vault was given a new end. */
  readonly 'vault.extended': { readonly vaultId: string; readonly expiresAt: string }
  /** A vault is kept until somebody deletes it. */
  readonly 'vault.persisted': { readonly vaultId: string; readonly persistedAt: string }
  /** A deposit is as deep in the chain as the chain asks for. */
  readonly 'deposit.success': {
    readonly walletId: string
    readonly txHash: string
    readonly logIndex: number
    readonly amount: string
    readonly rawAmount: string
    readonly tokenSymbol: string
    readonly chain: string
    readonly from: string
    readonly to: string
    readonly blockNumber: number
    readonly confirmedAt: string
  }
  /** Screening flagged a wallet, or the sender of a deposit: `transactionId` names the deposit. */
  readonly 'wallet.flagged': {
    readonly walletId: string
    readonly address: string
    readonly transactionId: string | null
    readonly reason: string
    readonly flaggedAt: string
  }
  /** Screening took a flag away. */
  readonly 'wallet.cleared': {
    readonly walletId: string
    readonly address: string
    readonly transactionId: string | null
    readonly clearedAt: string
  }
  /** A transfer has arrived. */
  readonly 'transfer.completed': {
    readonly transactionId: string
    readonly walletId: string
    readonly route: string
    readonly fromChain: string
    readonly toChain: string
    readonly amount: string
    readonly fromToken: string
    readonly toToken: string
    /** What arrived, in whole tokens of `toToken`, or of `receivedToken` where that is set. */
    readonly toAmount: string
    /** The token that a partner delivered where it is another than `toToken`. */
    readonly receivedToken: string | null
    readonly destinationTxHash: string | null
    readonly txHash: string
    readonly confirmedAt: string
  }
  /** A transfer has failed and the money is back, or never left: then the refund's members are null. */
  readonly 'transfer.failed': {
    readonly transactionId: string
    readonly walletId: string
    readonly route: string
    readonly reason: string
    readonly refundTxHash: string | null
    readonly refundedAt: string | null
  }
  /** The partner of a transfer has failed 72 hours ago, and no refund was seen. The transfer is still pending: do not send the money again. */
  readonly 'transfer.refund_overdue': TransferOwed & { readonly txHash: string | null; readonly failingSince: string }
  /** The money of an overdue refund is back; `transfer.failed` comes with it. */
  readonly 'transfer.refunded': TransferOwed & { readonly refundTxHash: string | null; readonly refundedAt: string }
  /** A withdrawal went on (`conversion_complete`), or a failed one's tokens are back (`refund` is `done`). */
  readonly 'withdrawal.updated': {
    readonly withdrawalId: string
    readonly walletId: string
    readonly status: string
    readonly refund: string | null
    readonly updatedAt: string
  }
  /** The wire has arrived at the bank. */
  readonly 'withdrawal.completed': {
    readonly withdrawalId: string
    readonly walletId: string
    readonly amount: string
    readonly token: string
    readonly reference: string | null
    readonly completedAt: string
  }
  readonly 'withdrawal.failed': { readonly withdrawalId: string; readonly reason: string; readonly failedAt: string }
  /** 80 or 100 % of what the plan grants is used; once for each calendar month (UTC), kind and limit. `kind` is a member of `billing.usage`. */
  readonly 'usage.threshold': {
    readonly kind: string
    readonly percent: number
    readonly used: number
    readonly limit: number
    readonly month: string
    readonly reachedAt: string
  }
  /** Somebody was invited to the organisation. */
  readonly 'member.invited': {
    readonly accountId: string
    readonly email: string
    readonly role: string
    readonly invitedAt: string
  }
  /** An endpoint failed for five days and gets nothing more until it is turned on again. */
  readonly 'webhook.disabled': { readonly webhookId: string; readonly disabledAt: string }
  /** Somebody asked for a delivery to see whether it arrives. */
  readonly 'webhook.test': { readonly webhookId: string }
}

type TransferOwed = {
  readonly transactionId: string
  readonly walletId: string
  readonly route: string
  /** What left the wallet, of `token` on `chain`. */
  readonly amount: string
  readonly token: string
  readonly chain: string
}

type PaymentOutcome = {
  readonly paymentId: string
  readonly walletId: string | null
  readonly amount: string
  readonly token: string
  readonly chain: string
  readonly payer: string | null
}

export type WebhookEventType = keyof WebhookPayloads
