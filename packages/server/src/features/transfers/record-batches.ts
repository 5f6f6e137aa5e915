import { appendAudit } from '../../platform/audit.ts'
import { batch } from '../../platform/db/batch.ts'
import { type Db, isDeadlock, isRefusedData, type Tx } from '../../platform/db/db.ts'
import { rootOf } from '../../platform/db/fair-db.ts'
import { isProblem } from '../../platform/errors.ts'
import type { Ctx } from './ports.ts'
import { type Intent, type Outcome, RejectedIntents, storeTransfers } from './record.ts'
import type { TransferId } from './store.ts'

/** A caller's own intent, with its action in the audit log. */
export type OwnIntent = Intent & { readonly action: string }

/** Most tenants whose batches a process keeps separate; beyond that the map is cleared, which only makes batches smaller. */
const tenantsMax = 10_000
const recorders = new WeakMap<Db, Map<string, (intent: OwnIntent) => Promise<Outcome>>>()

/**
 * Stores a transfer: its rows, its first nonce, its spend-policy use, its audit record and its Idempotency-Key commit together. Concurrent
 * transfers of a tenant share a transaction, one batch at a time, since they lock the same wallets and the same log. Throws
 * `insufficient-balance` if another request has reserved the money since it was planned.
 */
export async function recordTransfer(intent: OwnIntent): Promise<TransferId> {
  const outcome = await recorderOf(intent.ctx)(intent)
  if (outcome instanceof Error) throw outcome
  return outcome
}

function recorderOf({ db: requested, tenant }: Ctx): (intent: OwnIntent) => Promise<Outcome> {
  const db = rootOf(requested)
  const tenants = recorders.get(db) ?? new Map<string, (intent: OwnIntent) => Promise<Outcome>>()
  recorders.set(db, tenants)
  const name = `${tenant.organisationId}/${tenant.environment}`
  if (tenants.size >= tenantsMax) tenants.clear()
  const recorder =
    tenants.get(name) ?? batch<OwnIntent, Outcome>({ itemsMax: 64, batchesMax: 1 }, (some) => record(db, some))
  tenants.set(name, recorder)
  return recorder
}

/** Most attempts to store one transfer whose transaction the database aborted because of a deadlock. */
const deadlocksMax = 5

/**
 * Stores the batch. A transfer that cannot be stored fails alone: the others are stored without it. A deadlock rolls back the whole
 * transaction, so the transfers are then stored one by one.
 */
async function record(db: Db, intents: readonly OwnIntent[], deadlocks = 0): Promise<readonly Outcome[]> {
  try {
    return await db.tx((tx) => recordBatch(tx, intents))
  } catch (error) {
    if (error instanceof RejectedIntents) return recordOthers(db, intents, error)
    if (intents.length > 1 && (isRefusedData(error) || isDeadlock(error)))
      return (await Promise.all(intents.map((intent) => record(db, [intent])))).flat()
    if (isDeadlock(error) && deadlocks < deadlocksMax) return record(db, intents, deadlocks + 1)
    return intents.map(() => (error instanceof Error ? error : new Error(String(error))))
  }
}

async function recordOthers(db: Db, intents: readonly OwnIntent[], rejected: RejectedIntents): Promise<Outcome[]> {
  const others = intents.filter((one) => !rejected.causes.has(one))
  const outcomes = others.length === 0 ? [] : await record(db, others)
  return intents.map((one) => rejected.causes.get(one) ?? outcomes[others.indexOf(one)] ?? rejected)
}

async function recordBatch(tx: Tx, intents: readonly OwnIntent[]): Promise<readonly Outcome[]> {
  const outcomes = await storeTransfers(tx, intents)
  const made = intents.flatMap((intent, index) => {
    const outcome = outcomes[index]
    return outcome === undefined || outcome instanceof Error ? [] : [{ intent, target: outcome }]
  })
  for (const { intent, target } of made)
    await intent.ctx.idempotency?.commit(tx, target).catch((error: unknown) => {
      throw isProblem(error, 'idempotency-in-progress') ? new RejectedIntents(new Map([[intent, error]])) : error
    })
  for (const { intent, target } of made) {
    const { ctx, action, request, plan } = intent
    const { fromToken: token, toAddress: to, amount } = request
    appendAudit(ctx, tx, {
      action,
      target,
      details: { from: plan.source.id, to, network: plan.network.name, token, amount },
    })
  }
  return outcomes
}
