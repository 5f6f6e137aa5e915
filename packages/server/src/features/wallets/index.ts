export { depositOperations } from './deposits/routes.ts'
export { type DepositWatcher, startDepositWatcher } from './deposits/watcher.ts'
export { walletErrors } from './errors.ts'
export {
  createWalletDirectory,
  getPayableWallet,
  type ReceivingWallet,
  type WalletDirectory,
  type WalletId,
} from './receiving.ts'
export { byoWalletRecount } from './recount.ts'
export { walletOperations } from './routes.ts'
export { screeningJobs, screeningRecurring } from './screening/jobs.ts'
