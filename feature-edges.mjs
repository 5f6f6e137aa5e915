/** The edges between feature rooms, from the one that imports to those whose index it may use. */
export const featureEdges = {
  payments: ['plans', 'wallets'],
  wallets: ['plans', 'chains'],
  organisations: ['plans'],
  account: ['organisations', 'plans', 'billing'],
  billing: ['plans', 'organisations'],
  chains: [],
  plans: [],
  sessions: ['payments', 'plans', 'vaults'],
  transfers: ['chains', 'plans', 'wallets'],
  vaults: ['plans'],
  registry: [],
  webhooks: ['plans'],
  withdrawals: ['chains', 'transfers', 'wallets'],
}
