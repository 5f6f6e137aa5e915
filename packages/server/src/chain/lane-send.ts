import type { Address, Hex } from '@purser/protocol'
import { affordableFees } from './affordable.ts'
import { type Fees, feeLimits, replacementFees } from './fees.ts'
import type { LaneParts } from './lane.ts'
import { signForm } from './lane-form.ts'
import {
  type AttemptRow,
  type CallData,
  findCallData,
  insertAttempts,
  listAttempts,
  listEarlierRaw,
  listLatestRaw,
  markBroadcast,
  type TransactionRow,
  type Unsent,
} from './lane-store.ts'
import { tellSent, told } from './lane-tell.ts'
import type { SendAnswer } from './port.ts'

/** Says in the log that an account's lane could not go on; the next pass tries again. */
export function cannotGoOn({ deps, chain }: LaneParts, sender: Address) {
  return (error: unknown): [] => {
    const facts = { err: error, network: chain.network.name, sender }
    deps.log.warn(facts, 'the lane of an account could not go on; tried again')
    return []
  }
}

export async function attemptsOf({ deps }: LaneParts, transactions: readonly TransactionRow[]): Promise<Attempts> {
  if (transactions.length === 0) return new Map()
  const ids = transactions.map(({ id }) => id)
  return Map.groupBy(await listAttempts(deps.db, ids), ({ transactionId }) => transactionId)
}

/** What was signed before and is to go out once more. */
export async function sendAgain(parts: LaneParts, unsent: readonly Unsent[]): Promise<void> {
  const signed = unsent.flatMap(({ transaction, called }) => (called === undefined ? [transaction] : []))
  await broadcast(parts, signed, await attemptsOf(parts, signed))
}

/** Signs what is planned, of each account for itself, and sends it. Answers how many went out. */
export async function signPlanned(parts: LaneParts, unsent: readonly Unsent[]): Promise<number> {
  const planned = unsent.flatMap(({ transaction, called }) => (called === undefined ? [] : [{ transaction, called }]))
  if (planned.length === 0) return unsent.length
  const fees = await parts.chain.offeredFees()
  const accounts = [...Map.groupBy(planned, ({ transaction: { sender } }) => sender)]
  const signed = await Promise.all(
    accounts.map(async ([sender, own]) => {
      const wanted = own.map((one) => ({ ...one, sequence: 0, fees }))
      return accounts.length === 1 ? sign(parts, wanted) : sign(parts, wanted).catch(cannotGoOn(parts, sender))
    }),
  )
  const attempts = signed.flat()
  await store(parts, attempts)
  const answers = await parts.chain.send(attempts.map(({ attempt: { raw } }) => raw))
  await heed(
    parts,
    attempts.map(({ transaction, attempt }) => ({ transaction, attempts: [attempt] })),
    answers,
  )
  return attempts.length
}

interface Wanted {
  readonly transaction: TransactionRow
  readonly called: CallData
  readonly sequence: number
  readonly fees: Fees
}

interface Signed {
  readonly transaction: TransactionRow
  readonly attempt: AttemptRow & { readonly raw: Hex }
}

function sign(parts: LaneParts, wanted: readonly Wanted[]): Promise<Signed[]> {
  const createdAt = parts.deps.clock.now()
  return Promise.all(
    wanted.map(async ({ transaction, called, sequence, fees }) => {
      const { hash, raw } = await signForm(parts, transaction, { ...called, fees })
      return { transaction, attempt: { transactionId: transaction.id, sequence, hash, raw, ...fees, createdAt } }
    }),
  )
}

/** Stores what was signed before anybody can send it; all of it or nothing. */
async function store({ deps, chain, handlers }: LaneParts, signed: readonly Signed[]): Promise<void> {
  if (signed.length === 0) return
  await deps.db.tx(async (tx) => {
    await insertAttempts(
      tx,
      chain.network.name,
      signed.map(({ attempt }) => attempt),
    )
    await tellSent(
      handlers,
      tx,
      signed.map(({ transaction, attempt: { hash } }) => ({ ...told(transaction), hash })),
    )
  })
}

/** Signs a transaction once more at other fees and sends it; the earlier bytes stay stored, since they may still be mined. */
async function signAgain(
  parts: LaneParts,
  { transaction, last, fees }: { readonly transaction: TransactionRow; readonly last: AttemptRow; readonly fees: Fees },
): Promise<void> {
  const called = await findCallData(parts.deps.db, transaction.id)
  const signed = await sign(parts, [{ transaction, called, sequence: last.sequence + 1, fees }])
  await store(parts, signed)
  await parts.chain.send(signed.map(({ attempt: { raw } }) => raw))
}

export type Attempts = ReadonlyMap<string, readonly AttemptRow[]>

/** Sends stored bytes, lowest nonce first. What a node refuses stays and is sent again later, never dropped. */
export async function broadcast(
  parts: LaneParts,
  transactions: readonly TransactionRow[],
  attempts: Attempts,
): Promise<readonly SendAnswer[]> {
  const { deps, chain } = parts
  const known = transactions.flatMap((transaction) => {
    const latest = attempts.get(transaction.id)?.at(-1)
    return latest === undefined ? [] : [{ transaction, attempts: attempts.get(transaction.id) ?? [] }]
  })
  if (known.length === 0) return []
  const raws = await listLatestRaw(
    deps.db,
    known.map(({ transaction }) => transaction.id),
  )
  const answers = await chain.send(known.flatMap(({ transaction }) => raws.get(transaction.id) ?? []))
  await markBroadcast(
    deps.db,
    known.map(({ transaction }) => transaction.id),
    deps.clock.now(),
  )
  await heed(parts, known, answers)
  return answers
}

/**
 * Does what a node's answers ask for. Where it refuses the newest form of a transaction, which offers most, the account may still pay for an
 * earlier one that the nodes have forgotten: those go out too.
 */
async function heed(
  parts: LaneParts,
  sent: readonly { readonly transaction: TransactionRow; readonly attempts: readonly AttemptRow[] }[],
  answers: readonly SendAnswer[],
): Promise<void> {
  for (const [index, { transaction, attempts }] of sent.entries()) {
    const [answer, latest] = [answers[index], attempts.at(-1)]
    if (answer?.outcome === 'refused') {
      complain(parts, transaction, answer.words)
      if (latest !== undefined && latest.sequence > 0)
        await parts.chain.send(await listEarlierRaw(parts.deps.db, transaction.id, latest.sequence))
      await lower(parts, transaction, attempts)
    }
    if (answer?.outcome === 'underpriced' && latest !== undefined) await replace(parts, transaction, latest)
  }
}

function complain({ deps }: LaneParts, transaction: TransactionRow, why: string): void {
  deps.metrics
    .gauge('purser_lane_refusals', 'How often a node refused a transaction; most often its account has no gas.')
    .inc()
  const facts = { network: transaction.network, sender: transaction.sender, nonce: transaction.nonce.toString(), why }
  deps.log.error(facts, 'the node refuses a transaction; it stays and is tried again')
}

/**
 * Signs the same transaction again at what its account can pay, where it can pay for none of its forms: fees have risen since its coin was
 * reckoned. The dearer bytes stay stored, since they may still be mined.
 */
async function lower(parts: LaneParts, transaction: TransactionRow, attempts: readonly AttemptRow[]): Promise<void> {
  const last = attempts.at(-1)
  const fees = await affordableFees(parts.chain, transaction.sender, transaction, attempts)
  if (fees !== undefined && last !== undefined) await signAgain(parts, { transaction, last, fees })
}

/** Signs the same transaction again at a higher fee. */
export async function replace(parts: LaneParts, transaction: TransactionRow, last: AttemptRow): Promise<void> {
  const fees = replacementFees(last, await parts.chain.offeredFees(), feeLimits(parts.chain.network))
  if (fees === undefined) {
    parts.deps.log.error(
      { network: transaction.network, nonce: transaction.nonce.toString() },
      'a transaction waits: more than the fee limit would be needed',
    )
    return
  }
  await signAgain(parts, { transaction, last, fees })
}
