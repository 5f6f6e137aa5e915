/** `{…}` in the path is filled in from the demo data. */
interface VisitedPage {
  readonly name: string
  readonly path: string
}

/** The pages that pictures and the tests of every page visit, by section: one line each. */
export const sections = {
  payments: [
    { name: 'home', path: '/' },
    { name: 'payments', path: '/payments' },
    { name: 'payment', path: '/payments/{paymentId}' },
    { name: 'payments-empty', path: '/payments?protocol=mpp' },
    { name: 'routes', path: '/routes' },
    { name: 'routes-empty', path: '/routes?q=nothing-of-this-name' },
    { name: 'sessions', path: '/sessions' },
  ],
  vaults: [
    { name: 'vaults', path: '/vaults' },
    { name: 'vaults-empty', path: '/vaults?status=persisted' },
    { name: 'vault', path: '/vaults/{vaultId}' },
    { name: 'vault-sealed', path: '/vaults/{sealedVaultId}' },
  ],
  wallets: [
    { name: 'wallets', path: '/wallets' },
    { name: 'wallets-own', path: '/wallets?kind=own' },
    { name: 'wallet', path: '/wallets/{walletId}' },
    { name: 'wallet-children', path: '/wallets/{walletId}?view=children' },
    { name: 'wallet-sweeps', path: '/wallets/{walletId}?view=sweeps' },
    { name: 'wallet-sweep', path: '/wallets/{walletId}?view=sweeps&open={sweepId}' },
    { name: 'wallet-reserved', path: '/wallets/{walletId}?view=reserved' },
    { name: 'child-address', path: '/wallets/{childId}' },
    { name: 'child-address-sweeps', path: '/wallets/{childId}?view=sweeps' },
    { name: 'child-address-unknown', path: '/wallets/cad_01h455vb4pex5vsknk084sn02q' },
    { name: 'wallet-on-hold', path: '/wallets/{walletId}?view=on-hold' },
  ],
  'money out': [
    { name: 'transfers', path: '/transfers' },
    { name: 'transfer', path: '/transfers/{transferId}' },
    { name: 'transfer-waiting', path: '/transfers/{waitingTransferId}' },
    { name: 'withdrawals', path: '/withdrawals' },
    { name: 'withdrawal', path: '/withdrawals/{withdrawalId}' },
    { name: 'bank-accounts', path: '/bank-accounts' },
    { name: 'approvals', path: '/approvals' },
    { name: 'approval', path: '/approvals/{approvalId}' },
    { name: 'approvals-all', path: '/approvals?view=history' },
  ],
  developers: [
    { name: 'quick-start', path: '/quick-start' },
    { name: 'keys', path: '/keys' },
    { name: 'webhooks', path: '/webhooks' },
    { name: 'webhook', path: '/webhooks/{webhookId}' },
    { name: 'events', path: '/events' },
    { name: 'events-types', path: '/events?view=types' },
    { name: 'logs', path: '/logs' },
    { name: 'logs-empty', path: '/logs?status=418' },
  ],
  organisation: [
    { name: 'team', path: '/team' },
    { name: 'usage', path: '/usage' },
    { name: 'audit-log', path: '/audit-log' },
    { name: 'audit-log-empty', path: '/audit-log?action=nothing' },
    { name: 'settings', path: '/settings' },
    { name: 'billing', path: '/settings/billing' },
    { name: 'account', path: '/account' },
  ],
} as const satisfies Readonly<Record<string, readonly VisitedPage[]>>

export type Section = keyof typeof sections

export const sectionNames = Object.keys(sections) as readonly Section[]

export const pages: readonly VisitedPage[] = Object.values(sections).flat()
