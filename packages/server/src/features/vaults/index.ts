import { bindOperations } from '../../platform/operation.ts'
import { bindTasks } from '../../platform/work/runner.ts'
import { countVaults } from './counts.ts'
import { deleteVaultContents } from './delete-contents.ts'
import { endVaultsOfDeleted } from './deleted.ts'
import { createDocumentWriter } from './document-writer.ts'
import { deleteUnreferencedFiles, vaultFileOperations } from './files/index.ts'
import { followVaults } from './lifecycle.ts'
import type { Deps } from './ports.ts'
import { vaultOperations } from './routes.ts'
import { vaultStreamOperations } from './stream/routes.ts'
import { VaultStreams } from './stream/streams.ts'
import { deleteExpiredVaultTokens, vaultTokenOperations } from './tokens/index.ts'

export { createVaultIn } from './create.ts'
export { deleteVaultContents } from './delete-contents.ts'
export { markOver } from './expiry-store.ts'
export { deleteUnreferencedFiles, vaultFileOperations } from './files/index.ts'
export { followVaults } from './lifecycle.ts'
export type { Deps as VaultDeps } from './ports.ts'
export { vaultRecounts } from './quota.ts'
export { vaultOperations } from './routes.ts'
export type { VaultId } from './schema.ts'
export { tenantSemaphores } from './semaphores.ts'
export { vaultStreamOperations } from './stream/routes.ts'
export { listEndedTokens, vaultTokenOperations } from './tokens/index.ts'
export { isPresent, lockPresent } from './vault.ts'

/** The dependencies that the feature makes. */
type Made = 'deletionCursors' | 'dueVaultsPlace' | 'vaultStreams' | 'vaultNews' | 'writeDocument'

/** Builds the feature. `stop` ends the event streams that are open. */
export function createVaults(needs: Omit<Deps, Made>) {
  const vaultStreams = new VaultStreams(needs)
  const deps: Deps = {
    ...needs,
    vaultStreams,
    dueVaultsPlace: { after: undefined },
    vaultNews: (vaultId) => vaultStreams.wake(vaultId),
    writeDocument: createDocumentWriter(),
    deletionCursors: new Map(),
  }
  const operations = [...vaultOperations, ...vaultFileOperations, ...vaultTokenOperations, ...vaultStreamOperations]
  return {
    deps,
    operations: bindOperations(deps, operations),
    loops: bindTasks(deps, [
      followVaults,
      endVaultsOfDeleted,
      deleteVaultContents,
      countVaults,
      deleteUnreferencedFiles,
      deleteExpiredVaultTokens,
    ]),
    stop: () => vaultStreams.stop(),
  }
}
