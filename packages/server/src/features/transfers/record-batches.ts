import { appendAudit } from '../../platform/audit.ts'
import type { Tenant } from '../../platform/ctx.ts'
import { batch } from '../../platform/db/batch.ts'
import { type Db, isDeadlock, isRefusedData, type Tx } from '../../platform/db/db.ts'
import { isProblem } from '../../platform/errors.ts'
import type { OwnIntent, TransferPorts } from './ports.ts'
import { type Outcome, RejectedIntents, storeTransfers } from './record.ts'

/** Most tenants whose batches a process keeps separate; beyond that the map is cleared, which only makes batches smaller. */
const tenantsMax = 10_000

/** Creates `recordTransfer`. A tenant has one batch in progress at a time, since its transfers lock the same wallets and the same log. */
export function createRecordTransfer(db: Db): TransferPorts['recordTransfer'] {
  const recorders = new Map<string, (intent: OwnIntent) => Promise<Outcome>>()
  const recorderOf = ({ organisationId, environment }: Tenant) => {
    const name = `${organisationId}/${environment}`
    if (recorders.size >= tenantsMax) recorders.clear()
    const recorder =
      recorders.get(name) ?? batch<OwnIntent, Outcome>({ itemsMax: 64, batchesMax: 1 }, (some) => record(db, some))
    recorders.set(name, recorder)
    return recorder
  }
  return async (intent) => {
    const outcome = await recorderOf(intent.ctx.tenant)(intent)
    if (outcome instanceof Error) throw outcome
    return outcome
  }
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
