export { bankAccountOperations } from './bank-accounts/routes.ts'
export { partnerPages } from './payout-hints/bridge-page.ts'
export { sweepPayoutHints } from './payout-hints/jobs.ts'
