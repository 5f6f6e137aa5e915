export { createVaultIn } from './create.ts'

export { markOver } from './expiry-store.ts'
export { sweepFiles, vaultFileOperations } from './files/index.ts'
export { followVaults } from './lifecycle.ts'

export { vaultRecounts } from './recount.ts'
export { vaultOperations } from './routes.ts'
export type { VaultId } from './schema.ts'
export { tenantSemaphores } from './semaphores.ts'
export { VaultStreams, vaultStreamOperations } from './stream/index.ts'
export { listEndedTokens, sweepVaultTokens, vaultTokenOperations } from './tokens/index.ts'
export { lockPresent } from './vault.ts'
