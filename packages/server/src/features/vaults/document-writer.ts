import type { Tenant } from '../../platform/ctx.ts'
import { batch } from '../../platform/db/batch.ts'
import { isDeadlock, isRefusedData } from '../../platform/db/db.ts'
import { failPlatform } from '../../platform/errors.ts'
import { isKeyTaken } from '../../platform/http/batched-keys.ts'
import {
  type DocumentOutcome,
  type Locking,
  lockingFree,
  lockingOne,
  type Writing,
  writeBatch,
} from './document-batch.ts'
import type { Deps } from './ports.ts'
import type { VaultDocument } from './schema.ts'
import { documentSemaphores, documentsMax, vaultSemaphores } from './semaphores.ts'

/** Largest document that shares a batch, so that a batch has at most 4 MiB of documents. */
const batchedBytesMax = 65_536
/** Most tenants, and most locked vaults, whose batches a process keeps; above it the map is cleared, which only splits a batch. */
const batchesKeptMax = 10_000

type Write = (writing: Writing) => Promise<DocumentOutcome>

/**
 * Writes documents. Those of a tenant's concurrent requests share a batch, one batch at a time because they share the counter of storage: one
 * transaction has the documents, their events, the count and the callers' idempotency keys. A vault that somebody else has locked is left out,
 * and so delays no other vault; its documents wait for it together, with at most two connections. A large document is written alone.
 */
export function createDocumentWriter(): Deps['writeDocument'] {
  const ofTenants = keptBy(
    ({ ctx }) => nameOf(ctx.tenant),
    (writings) => writeOrFail(writings, lockingFree),
  )
  const ofLockedVaults = keptBy(({ ctx, vaultId }) => `${nameOf(ctx.tenant)}/${vaultId}`, writeWhenFree)
  return async (ctx, vaultId, given) => {
    const writing = { ctx, vaultId, given }
    if (given.size > batchedBytesMax) return documentOf((await writeWhenFree([writing]))[0])
    const outcome = await ctx.withSemaphores(documentSemaphores(ctx.tenant), () => ofTenants(writing))
    return documentOf(outcome === 'locked' ? await ofLockedVaults(writing) : outcome)
  }
}

function nameOf({ organisationId, environment }: Tenant): string {
  return `${organisationId}/${environment}`
}

/** Returns a function that adds a request to the batch of its name. */
function keptBy(
  name: (writing: Writing) => string,
  run: (writings: readonly Writing[]) => Promise<readonly DocumentOutcome[]>,
): Write {
  const batches = new Map<string, Write>()
  return (writing) => {
    const known =
      batches.get(name(writing)) ?? batch<Writing, DocumentOutcome>({ itemsMax: documentsMax, batchesMax: 1 }, run)
    if (batches.size >= batchesKeptMax) batches.clear()
    batches.set(name(writing), known)
    return known(writing)
  }
}

/** Writes documents of one vault, behind its other writers. */
async function writeWhenFree(writings: readonly Writing[]): Promise<readonly DocumentOutcome[]> {
  const [first] = writings
  if (first === undefined) return []
  const { ctx, vaultId } = first
  return ctx.withSemaphores(vaultSemaphores(ctx.tenant, vaultId), () => writeOrFail(writings, lockingOne))
}

/**
 * Commits a batch. If the database refuses one of its rows, only that one fails: the others are written one by one. The same applies to one
 * whose idempotency key was claimed meanwhile.
 */
async function writeOrFail(writings: readonly Writing[], locking: Locking): Promise<readonly DocumentOutcome[]> {
  const [first] = writings
  if (first === undefined) return []
  try {
    return await first.ctx.db.tx((tx) => writeBatch(tx, writings, locking))
  } catch (error) {
    if (writings.length === 1 || !(isRefusedData(error) || isDeadlock(error))) return writings.map(() => faultOf(error))
    const outcomes: DocumentOutcome[] = []
    for (const writing of writings) outcomes.push(...(await writeOrFail([writing], locking)))
    return outcomes
  }
}

function faultOf(error: unknown): Error {
  if (isKeyTaken(error)) return failPlatform('idempotency-in-progress')
  return error instanceof Error ? error : new Error(String(error))
}

function documentOf(outcome: DocumentOutcome | undefined): VaultDocument {
  if (outcome === undefined || outcome === 'locked') throw new Error('a document was neither written nor refused')
  if (outcome instanceof Error) throw outcome
  return outcome
}
