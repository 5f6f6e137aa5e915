import type { ApiKeyRecord, Environment } from '@purser/sdk'

export const keysKey = ['api-keys'] as const

export type KeyScope = NonNullable<ApiKeyRecord['scopes']>[number]

/** The scopes of a key, each with the operations that it allows. */
export const scopeWords: readonly { readonly scope: KeyScope; readonly allows: string }[] = [
  { scope: 'read', allows: 'Read everything' },
  { scope: 'payments', allows: 'Take payments: challenges, verify, settle, sessions, the registry' },
  { scope: 'vaults', allows: 'Create and change vaults and their files; with “read”, tokens too' },
  { scope: 'wallets', allows: 'Create and change wallets, sweeps and spend policies' },
  { scope: 'money', allows: 'Move money out: transfers, refunds, withdrawals, bank accounts' },
  { scope: 'webhooks', allows: 'Replay and listen to events; with “read”, change endpoints too' },
  { scope: 'organisation', allows: 'Change the organisation, its members and keys' },
]

/** The lifetimes that a new key can have, in days; undefined for no end. */
export const lifetimes = [
  { label: 'No expiry', days: undefined },
  { label: '7 days', days: 7 },
  { label: '30 days', days: 30 },
  { label: '90 days', days: 90 },
  { label: 'A year', days: 365 },
] as const

/** Returns the expiry of a key that is made now (ISO 8601); undefined for no end. */
export function endOf(days: number | undefined, now: Date): string | undefined {
  return days === undefined ? undefined : new Date(now.getTime() + days * 86_400_000).toISOString()
}

/** A key shortened for display: its prefix and its last four characters. */
export function shownKey(environment: Environment, last4: string): string {
  return `svc_${environment}_sk_…${last4}`
}

export type KeyState = 'valid' | 'expired' | 'revoked'

export function stateOf({ revokedAt, expiresAt }: Pick<ApiKeyRecord, 'revokedAt' | 'expiresAt'>, now: Date): KeyState {
  if (revokedAt !== null) return 'revoked'
  return expiresAt !== null && Date.parse(expiresAt) <= now.getTime() ? 'expired' : 'valid'
}
