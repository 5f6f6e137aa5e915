import { fencedTx } from '../../platform/leases/store.ts'
import type { Receipt } from '../port.ts'
import { notifyMined, toLaneTransaction } from './handlers.ts'
import { type LaneParts, logNotFollowed } from './parts.ts'
import { lockOpen, markMined, type TransactionRow } from './store.ts'

/** Most transactions whose receipts one database transaction stores. */
const closedAtOnce = 50

type AdvanceParts = Pick<LaneParts, 'deps' | 'chain' | 'handlers' | 'leased'>

interface Found {
  readonly transaction: TransactionRow
  readonly receipt: Receipt
}

/** How many transactions are now final, and the ids of those whose receipts the quorum does not confirm. */
interface Advanced {
  readonly closed: number
  readonly unconfirmed: ReadonlySet<string>
}

/** Stores receipts in batches. A transaction that cannot be stored does not block others. */
export async function advanceAll(parts: AdvanceParts, known: readonly Found[], head: bigint): Promise<Advanced> {
  const wanted = known.filter(({ transaction: { status, minedBlock }, receipt }) => {
    return status !== 'mined' || minedBlock !== receipt.blockNumber || isFinal(parts, receipt, head)
  })
  const news = await confirmed(parts, wanted, head)
  const unconfirmed = new Set(wanted.filter((one) => !news.includes(one)).map(({ transaction }) => transaction.id))
  let closed = 0
  for (let from = 0; from < news.length; from += closedAtOnce) {
    const some = news.slice(from, from + closedAtOnce)
    closed += await advance(parts, some, head).catch(() => advanceEach(parts, some, head))
  }
  return { closed, unconfirmed }
}

/**
 * The receipts that the quorum confirms: at confirmation depth when the head indicates it, otherwise at depth 1. The next pass reads the others
 * again.
 */
async function confirmed(parts: AdvanceParts, news: readonly Found[], head: bigint): Promise<Found[]> {
  const { deps, chain } = parts
  const groups = Map.groupBy(news, ({ receipt }) =>
    isFinal(parts, receipt, head) ? chain.network.confirmationDepth : 1,
  )
  const agreed = await Promise.all(
    [...groups].map(async ([depth, some]) => {
      const verdicts = await chain.confirmReceipts(
        some.map(({ receipt }) => receipt),
        { depth },
      )
      return some.filter((_, index) => verdicts[index] === 'yes')
    }),
  )
  if (agreed.flat().length < news.length)
    deps.log.warn({ network: chain.network.name }, 'nodes do not agree on a receipt yet; it will be read again')
  return agreed.flat()
}

async function advanceEach(parts: AdvanceParts, some: readonly Found[], head: bigint): Promise<number> {
  let closed = 0
  for (const one of some)
    closed += await advance(parts, [one], head).catch((error: unknown) => {
      logNotFollowed(parts, one.transaction, error)
      return 0
    })
  return closed
}

function isFinal({ chain: { network } }: AdvanceParts, { blockNumber }: Receipt, head: bigint): boolean {
  return head - blockNumber + 1n >= BigInt(network.confirmationDepth)
}

/** Skips transactions that are already closed or whose shard another process has leased. */
function advance(parts: AdvanceParts, some: readonly Found[], head: bigint): Promise<number> {
  const { deps, handlers, leased } = parts
  return fencedTx(deps.db, leased, async (tx) => {
    const receipts = new Map(some.map(({ transaction, receipt }) => [transaction.id, receipt]))
    const locked = await lockOpen(tx, leased, [...receipts.keys()])
    const mined = locked.flatMap((row) => {
      const receipt = receipts.get(row.id)
      if (receipt === undefined) return []
      const transaction = toLaneTransaction(row, receipt.transactionHash)
      const isNews = row.status !== 'mined' || row.minedBlock !== receipt.blockNumber
      return [{ id: row.id, transaction, receipt, isNews, isFinal: isFinal(parts, receipt, head) }]
    })
    if (mined.length === 0) return 0
    await markMined(tx, mined)
    await notifyMined(handlers, tx, mined)
    return mined.filter((one) => one.isFinal).length
  })
}
