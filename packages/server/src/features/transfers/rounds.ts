import { appendRecords } from '../../platform/audit.ts'
import type { Ctx } from '../../platform/ctx.ts'
import { type Db, isDeadlock, isRefusedData, type Tx } from '../../platform/db/db.ts'
import { gather } from '../../platform/db/gather.ts'
import { isProblem } from '../../platform/errors.ts'
import { type Intent, LeftOut, type Outcome, storeTransfers } from './record.ts'
import type { TransferId } from './store.ts'

/** An intent of a caller's own, and what the audit log calls it. */
export type OwnIntent = Intent & { readonly action: string }

/** Tenants whose rounds a process keeps apart; beyond it they begin anew, which costs a round its company and nothing else. */
const tenantsMax = 10_000
const recorders = new WeakMap<Db, Map<string, (intent: OwnIntent) => Promise<Outcome>>>()

/**
 * Makes a transfer: its rows, its first nonce, what it takes of the spend policy, its audit record and its Idempotency-Key commit together.
 * Those of a tenant that come at the same time share a transaction, one round at a time, since they lock the same wallets and the same log.
 * Throws `insufficient-balance` where another request has taken the money since it was planned.
 */
export async function recordTransfer(intent: OwnIntent): Promise<TransferId> {
  const outcome = await recorderOf(intent.ctx)(intent)
  if (outcome instanceof Error) throw outcome
  return outcome
}

function recorderOf({ db, tenant }: Ctx): (intent: OwnIntent) => Promise<Outcome> {
  const tenants = recorders.get(db) ?? new Map<string, (intent: OwnIntent) => Promise<Outcome>>()
  recorders.set(db, tenants)
  const name = `${tenant.organisationId}/${tenant.environment}`
  if (tenants.size >= tenantsMax) tenants.clear()
  const recorder =
    tenants.get(name) ?? gather<OwnIntent, Outcome>({ itemsMax: 64, roundsMax: 1 }, (some) => record(db, some))
  tenants.set(name, recorder)
  return recorder
}

/** How often one transfer is written again whose transaction the database ended because of a deadlock. */
const deadlocksMax = 5

/**
 * What cannot be written fails by itself: the others are written without it. After a deadlock nothing of the transaction is left,
 * so the transfers are written again, each by itself.
 */
async function record(db: Db, intents: readonly OwnIntent[], deadlocks = 0): Promise<readonly Outcome[]> {
  try {
    return await db.tx((tx) => recordRound(tx, intents))
  } catch (error) {
    if (error instanceof LeftOut) return withoutThose(db, intents, error)
    if (intents.length > 1 && (isRefusedData(error) || isDeadlock(error)))
      return (await Promise.all(intents.map((intent) => record(db, [intent])))).flat()
    if (isDeadlock(error) && deadlocks < deadlocksMax) return record(db, intents, deadlocks + 1)
    return intents.map(() => (error instanceof Error ? error : new Error(String(error))))
  }
}

async function withoutThose(db: Db, intents: readonly OwnIntent[], left: LeftOut): Promise<Outcome[]> {
  const others = intents.filter((one) => !left.causes.has(one))
  const outcomes = others.length === 0 ? [] : await record(db, others)
  return intents.map((one) => left.causes.get(one) ?? outcomes[others.indexOf(one)] ?? left)
}

async function recordRound(tx: Tx, intents: readonly OwnIntent[]): Promise<readonly Outcome[]> {
  const outcomes = await storeTransfers(tx, intents)
  const made = intents.flatMap((intent, index) => {
    const outcome = outcomes[index]
    return outcome === undefined || outcome instanceof Error ? [] : [{ intent, target: outcome }]
  })
  for (const { intent, target } of made)
    await intent.ctx.idempotency?.commit(tx, target).catch((error: unknown) => {
      throw isProblem(error, 'idempotency-in-progress') ? new LeftOut(new Map([[intent, error]])) : error
    })
  await appendRecords(
    tx,
    made.map(({ intent: { ctx, action, request, plan }, target }) => {
      const { fromToken: token, toAddress: to, amount } = request
      return {
        ctx,
        entry: { action, target, details: { from: plan.source.id, to, network: plan.network.name, token, amount } },
      }
    }),
  )
  return outcomes
}
