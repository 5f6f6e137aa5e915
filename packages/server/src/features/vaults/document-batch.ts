import type { Tx } from '../../platform/db/db.ts'
import { Problem } from '../../platform/errors.ts'
import { claimTogether, type KeyedRequest, storeTogether } from '../../platform/http/batched-keys.ts'
import { newId } from '../../platform/ids.ts'
import { type Plan, planOf } from '../plans/index.ts'
import { type AddedDocument, insertDocuments } from './document-store.ts'
import { linkOf, refuseFullStream } from './events.ts'
import type { Ctx, GivenDocument } from './ports.ts'
import { type QuotaBatch, quotaBatchOf, refuseOver, refuseUnsealable } from './quota.ts'
import type { VaultDocument, VaultId } from './schema.ts'
import { lockFreeVaults, lockVault, type VaultRow } from './store.ts'
import { writableOf } from './vault.ts'

/** The request to write a document. */
export interface Writing {
  readonly ctx: Ctx
  readonly vaultId: VaultId
  readonly given: GivenDocument
}

/** The outcome of a request: the document as it was written, `locked` if somebody else has locked its vault, or the error for the caller. */
export type DocumentOutcome = VaultDocument | 'locked' | Error

/** Locks the vaults of a batch. A vault that is not among the rows is locked by somebody else, or does not exist. */
export interface Locking {
  /** The state of a vault that is not among the rows. */
  readonly missing: 'locked' | 'unknown'
  readonly lock: (tx: Tx, batch: readonly Writing[]) => Promise<readonly VaultRow[]>
}

/** Locks the vaults that are free now. A locked one delays no other. */
export const lockingFree: Locking = {
  missing: 'locked',
  lock: async (tx, batch) => {
    const vaultIds = [...new Set(batch.map(({ vaultId }) => vaultId))]
    return batch[0] === undefined ? [] : lockFreeVaults(tx, batch[0].ctx.tenant, vaultIds)
  },
}

/** Waits for the one vault of a batch. */
export const lockingOne: Locking = {
  missing: 'unknown',
  lock: async (tx, [first]) => {
    const vault = first && (await lockVault(tx, first.ctx.tenant, first.vaultId))
    return vault === undefined ? [] : [vault]
  },
}

/**
 * Writes the documents of one tenant's requests in the caller's transaction. Each is judged as if it came alone, after those before it, so that a
 * refusal affects no other. The order of locks is that of `lockPresent`: no vault is locked after the counter of storage.
 */
export async function writeBatch(
  tx: Tx,
  batch: readonly Writing[],
  locking: Locking,
): Promise<readonly DocumentOutcome[]> {
  const [first] = batch
  if (first === undefined) return []
  const { ctx } = first
  // Sent together: the keys are claimed before the vaults are locked, and neither waits for a key.
  const [interruptions, rows, plan] = await Promise.all([
    claimTogether(tx, batch.flatMap(keyedOf)),
    locking.lock(tx, batch),
    planOf(tx, ctx.tenant.organisationId),
  ])
  const vaults = new Map(rows.map((row) => [row.id, row]))
  const quota = quotaBatchOf(tx, ctx, plan, 'storageBytes')
  const added: Added[] = []
  const outcomes: DocumentOutcome[] = []
  for (const writing of batch) {
    const interruption = writing.ctx.batchedKey && interruptions.get(writing.ctx.batchedKey)
    const outcome = interruption ?? (await judge(writing, { vaults, plan, quota, locking }))
    if (!(outcome instanceof Error) && outcome !== 'locked') {
      vaults.set(writing.vaultId, outcome.vault)
      added.push(outcome)
    }
    outcomes.push(outcome instanceof Error || outcome === 'locked' ? outcome : outcome.result)
  }
  if (added.length > 0) await write(tx, ctx, { added, quota })
  return outcomes
}

/** A document that is accepted, its response, and its vault's row after it. */
interface Added extends AddedDocument {
  readonly writing: Writing
  readonly result: VaultDocument
  readonly vault: VaultRow
}

interface Judging {
  readonly vaults: ReadonlyMap<VaultId, VaultRow>
  readonly plan: Plan
  readonly quota: QuotaBatch
  readonly locking: Locking
}

async function judge(writing: Writing, judging: Judging): Promise<Added | 'locked' | Problem> {
  const { vaults, locking } = judging
  const row = vaults.get(writing.vaultId)
  if (row === undefined && locking.missing === 'locked') return 'locked'
  try {
    return await accept(writing, row, judging)
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
}

/** Returns the document as it is written. Throws if the vault is not writable, or if a limit of the vault or of storage would be exceeded. */
async function accept(
  writing: Writing,
  row: VaultRow | undefined,
  { plan, quota }: Pick<Judging, 'plan' | 'quota'>,
): Promise<Added> {
  const { ctx, given } = writing
  const before = writableOf(row, ctx.clock.now())
  refuseOver(ctx, 'documents-per-vault-exceeded', plan.documentsPerVault, before.documentCount)
  refuseUnsealable(ctx, 'documents-per-vault-exceeded', before)
  refuseFullStream(before)
  await quota.reserve(given.size)
  const { name, data, content, size, sha256 } = given
  const document = { id: newId('doc', ctx), name, size, sha256, createdAt: ctx.clock.now() }
  const payload = { documentId: document.id, name, size, sha256 }
  const growth = { documents: 1, bytes: size }
  const { link, vault } = linkOf(ctx, before, { type: 'document.added', payload, growth })
  return { writing, document: { ...document, content }, link, vault, result: { ...document, data } }
}

/** Writes what was accepted. Its three statements are sent together; PostgreSQL runs the next one when the last has succeeded. */
async function write(
  tx: Tx,
  ctx: Pick<Ctx, 'tenant' | 'vaultNews'>,
  { added, quota }: { readonly added: readonly Added[]; readonly quota: QuotaBatch },
): Promise<void> {
  const keyed = added.flatMap(({ writing, result }) => keyedOf(writing).map((request) => ({ ...request, result })))
  await Promise.all([insertDocuments(tx, ctx.tenant, added), quota.commit(), storeTogether(tx, keyed)])
  await quota.report()
  const vaultIds = new Set(added.map(({ writing }) => writing.vaultId))
  tx.afterCommit(() => {
    for (const vaultId of vaultIds) ctx.vaultNews?.(vaultId)
  })
}

function keyedOf({ ctx }: Writing): KeyedRequest[] {
  return ctx.batchedKey === undefined ? [] : [{ ctx, key: ctx.batchedKey }]
}
