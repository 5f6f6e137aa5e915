import { fencedTx } from '../../platform/leases/store.ts'
import type { Receipt } from '../port.ts'
import { notifyMined, toLaneTransaction } from './handlers.ts'
import { type LaneParts, logNotFollowed } from './parts.ts'
import { lockOpen, markMined, type TransactionRow } from './store.ts'

/** Transactions whose receipts one database transaction writes down. */
const closedAtOnce = 50

type AdvanceParts = Pick<LaneParts, 'deps' | 'chain' | 'handlers' | 'held'>

interface Found {
  readonly transaction: TransactionRow
  readonly receipt: Receipt
}

/** Writes down what blocks say, many at once; returns how many are final now. One that cannot be written blocks no other. */
export async function advanceAll(parts: AdvanceParts, known: readonly Found[], head: bigint): Promise<number> {
  const news = await confirmed(
    parts,
    known.filter(({ transaction: { status, minedBlock }, receipt }) => {
      return status !== 'mined' || minedBlock !== receipt.blockNumber || isFinal(parts, receipt, head)
    }),
    head,
  )
  let closed = 0
  for (let from = 0; from < news.length; from += closedAtOnce) {
    const some = news.slice(from, from + closedAtOnce)
    closed += await advance(parts, some, head).catch(() => advanceEach(parts, some, head))
  }
  return closed
}

/** Those that the quorum confirms, at the depth that the head promises; the others are read again by the next pass. */
async function confirmed(parts: AdvanceParts, news: readonly Found[], head: bigint): Promise<Found[]> {
  const { deps, chain } = parts
  const groups = Map.groupBy(news, ({ receipt }) =>
    isFinal(parts, receipt, head) ? chain.network.confirmationDepth : 1,
  )
  const sure = await Promise.all(
    [...groups].map(async ([depth, some]) => {
      const verdicts = await chain.confirmReceipts(
        some.map(({ receipt }) => receipt),
        { depth },
      )
      return some.filter((_, index) => verdicts[index] === 'yes')
    }),
  )
  if (sure.flat().length < news.length)
    deps.log.warn({ network: chain.network.name }, 'nodes do not agree about a receipt yet; it is read again')
  return sure.flat()
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

/** Those that are closed already, or whose shard is another process's by now, are left as they are. */
function advance(parts: AdvanceParts, some: readonly Found[], head: bigint): Promise<number> {
  const { deps, handlers, held } = parts
  return fencedTx(deps.db, held, async (tx) => {
    const receipts = new Map(some.map(({ transaction, receipt }) => [transaction.id, receipt]))
    const locked = await lockOpen(tx, held, [...receipts.keys()])
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
