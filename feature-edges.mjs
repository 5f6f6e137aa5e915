/** The edges between feature rooms, from the one that imports to those whose index it may use. */
export const featureEdges = {
  payments: ['chains', 'plans', 'relayer', 'transfers', 'wallets'],
  funds: [],
  wallets: ['plans', 'chains', 'funds', 'relayer'],
  organisations: ['plans'],
  account: ['organisations', 'plans', 'billing'],
  billing: ['plans', 'organisations'],
  chains: [],
  plans: [],
  relayer: ['plans'],
  sessions: ['payments', 'plans', 'vaults'],
  transfers: ['chains', 'funds', 'plans', 'relayer', 'wallets'],
  testing: ['chains', 'wallets'],
  vaults: ['plans'],
  registry: [],
  webhooks: ['plans'],
  withdrawals: ['chains', 'funds', 'transfers', 'wallets'],
}
