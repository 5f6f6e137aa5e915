export { accessEndsAt, streamGuest, vaultGuest } from './guest.ts'
export { vaultTokenOperations } from './routes.ts'
export { sweepVaultTokens } from './sweep.ts'
