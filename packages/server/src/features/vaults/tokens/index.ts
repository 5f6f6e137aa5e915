export { accessEndsAt, streamGuest, vaultGuest } from './guest.ts'
export { vaultTokenOperations } from './routes.ts'
export { listEndedTokens } from './store.ts'
export { deleteExpiredVaultTokens } from './tokens.ts'
