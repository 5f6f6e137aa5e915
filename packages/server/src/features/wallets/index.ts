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
