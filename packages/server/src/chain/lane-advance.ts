import type { Deps } from '../platform/ctx.ts'
import { lockOpen, markMined, type TransactionRow } from './lane-store.ts'
import { tellMined, told } from './lane-tell.ts'
import type { Chain, LaneHandler, LaneTransaction, Receipt } from './port.ts'

/** Transactions whose receipts one database transaction writes down. */
const closedAtOnce = 50

interface AdvanceParts {
  readonly deps: Pick<Deps, 'db' | 'log'>
  readonly chain: Pick<Chain, 'network' | 'believe'>
  readonly handlers: ReadonlyMap<string, LaneHandler>
}

/** Says in the log that one could not be taken further; the next pass tries again. */
export function notFollowed(
  { deps }: Pick<AdvanceParts, 'deps'>,
  { id: transactionId }: TransactionRow,
  error: unknown,
): void {
  deps.log.error({ err: error, transactionId }, 'a transaction could not be followed; it will be tried again')
}

interface Found {
  readonly transaction: TransactionRow
  readonly receipt: Receipt
}

/** Writes down what blocks say, many at once; answers how many are final now. One that cannot be written keeps no other from it. */
export async function advanceAll(parts: AdvanceParts, known: readonly Found[], head: bigint): Promise<number> {
  const news = await believed(
    parts,
    known.filter(({ transaction: { status, minedBlock }, receipt }) => {
      return status !== 'mined' || minedBlock !== receipt.blockNumber || isFinal(parts, receipt, head)
    }),
  )
  let closed = 0
  for (let from = 0; from < news.length; from += closedAtOnce) {
    const some = news.slice(from, from + closedAtOnce)
    closed += await advance(parts, some, head).catch(() => advanceEach(parts, some, head))
  }
  return closed
}

/** Those that every node tells alike; the others are asked for again by the next pass. */
async function believed({ deps, chain }: AdvanceParts, news: readonly Found[]): Promise<Found[]> {
  const isSo = await chain.believe(news.map(({ receipt }) => receipt))
  const sure = news.filter((_, index) => isSo[index] === true)
  if (sure.length < news.length)
    deps.log.warn({ network: chain.network.name }, 'nodes disagree about a receipt; it is asked for again')
  return sure
}

async function advanceEach(parts: AdvanceParts, some: readonly Found[], head: bigint): Promise<number> {
  let closed = 0
  for (const one of some)
    closed += await advance(parts, [one], head).catch((error: unknown) => {
      notFollowed(parts, one.transaction, error)
      return 0
    })
  return closed
}

function isFinal({ chain: { network } }: AdvanceParts, { blockNumber }: Receipt, head: bigint): boolean {
  return head - blockNumber + 1n >= BigInt(network.confirmationDepth)
}

function advance(parts: AdvanceParts, some: readonly Found[], head: bigint): Promise<number> {
  return parts.deps.db.tx(async (tx) => {
    const receipts = new Map(some.map(({ transaction, receipt }) => [transaction.id, receipt]))
    const locked = await lockOpen(tx, [...receipts.keys()])
    const mined = locked.flatMap((row) => {
      const receipt = receipts.get(row.id)
      if (receipt === undefined) return []
      const transaction: LaneTransaction = { ...told(row), hash: receipt.transactionHash }
      const isNews = row.status !== 'mined' || row.minedBlock !== receipt.blockNumber
      return [{ id: row.id, transaction, receipt, isNews, isFinal: isFinal(parts, receipt, head) }]
    })
    await markMined(tx, mined)
    await tellMined(parts, tx, mined)
    return some.length - mined.filter((one) => !one.isFinal).length
  })
}
