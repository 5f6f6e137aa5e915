/** The pages that pictures and the accessibility test visit: one line each. `{…}` is filled in from the demo data. */
export const pages: readonly { readonly name: string; readonly path: string }[] = [
  { name: 'home', path: '/' },
  { name: 'payments', path: '/payments' },
  { name: 'payment', path: '/payments/{paymentId}' },
  { name: 'payments-empty', path: '/payments?protocol=mpp' },
  { name: 'vaults', path: '/vaults' },
  { name: 'vaults-empty', path: '/vaults?status=persisted' },
  { name: 'vault', path: '/vaults/{vaultId}' },
  { name: 'vault-sealed', path: '/vaults/{sealedVaultId}' },
  { name: 'routes', path: '/routes' },
  { name: 'routes-empty', path: '/routes?q=nothing-of-this-name' },
  { name: 'sessions', path: '/sessions' },
  { name: 'transfers', path: '/transfers' },
  { name: 'withdrawals', path: '/withdrawals' },
  { name: 'bank-accounts', path: '/bank-accounts' },
  { name: 'team', path: '/team' },
  { name: 'account', path: '/account' },
]
