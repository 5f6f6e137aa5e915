import type { Address, Hex } from '@purser/protocol'
import type { Head, LookUp, Receipt, SeenReceipt, ShownReceipt, Watch } from '../port.ts'
import { readHead, readQuantity, readReceipt, resultOf } from '../rpc/read.ts'
import { isSameReceipt } from '../rpc/receipts.ts'
import type { NodeRpc, Rpc, RpcResponse, Voter } from '../rpc/rpc.ts'

/** Reads from one node, and the receipts that it does not deliver from the others. */
export async function watch(rpc: Rpc & NodeRpc, senders: readonly Address[], hashes: readonly Hex[]): Promise<Watch> {
  const own = await rpc.onOneNode((one) => watchAt(one, senders, hashes))
  const unread = hashes.filter((_, index) => own.receipts[index] === 'unread')
  const elsewhere = await seenAnywhere(rpc, unread)
  const receipts = hashes.map((hash, index): ShownReceipt => {
    const shown = own.receipts[index]
    return shown === 'unread' ? receiptOf(elsewhere[unread.indexOf(hash)]) : shown
  })
  return { ...own, head: atLeast(own.head, rpc), receipts }
}

/** A head that is not below the majority's: a node that shows an old one would keep transactions from being deep enough. */
export function atLeast(head: Head, { agreedHead }: NodeRpc): Head {
  const agreed = agreedHead()
  return agreed > head.number ? { ...head, number: agreed } : head
}

async function watchAt(one: Rpc, senders: readonly Address[], hashes: readonly Hex[]): Promise<Watch> {
  const [head, ...responses] = await one.batch([
    { method: 'eth_getBlockByNumber', params: ['latest', false] },
    ...senders.map((sender) => ({ method: 'eth_getTransactionCount', params: [sender, 'latest'] })),
    ...hashes.map(receiptCall),
  ])
  const counts = senders.map((_, index) => readQuantity(resultOf(responses[index]), 'transaction count'))
  return {
    head: readHead(resultOf(head)),
    transactionCounts: new Map(senders.map((sender, index) => [sender, counts[index] ?? 0n])),
    receipts: hashes.map((hash, index) => shownIn(responses[senders.length + index], hash)),
  }
}

function receiptCall(hash: Hex) {
  return { method: 'eth_getTransactionReceipt', params: [hash] }
}

/** An error of the call concerns this receipt alone. */
function shownIn(response: RpcResponse | undefined, hash: Hex): ShownReceipt {
  return response?.ok === true ? readReceipt(response.result ?? null, hash) : 'unread'
}

function receiptOf(seen: SeenReceipt | 'unread' | undefined): ShownReceipt {
  return seen === 'unread' ? seen : seen?.receipt
}

export async function ownReceipt(rpc: Rpc, hash: Hex): Promise<Receipt | undefined> {
  return readReceipt(await rpc.result('eth_getTransactionReceipt', [hash]), hash)
}

export async function shortReceipt(rpc: Rpc, hash: Hex): Promise<ShownReceipt> {
  const [response] = await rpc.onOneNode((one) => one.batch([{ ...receiptCall(hash), length: 'short' }]))
  return shownIn(response, hash)
}

export async function receiptAnywhere(rpc: Rpc & NodeRpc, hash: Hex): Promise<Receipt | undefined> {
  if (severalUsable(rpc).length === 0) return ownReceipt(rpc, hash)
  const [seen] = await findReceipts(rpc, [hash])
  return seen?.receipt
}

/** The healthy nodes if they are several: one that is alone is queried as the preferred one. */
function severalUsable({ voters }: NodeRpc): readonly Voter[] {
  const usable = voters.filter(({ node: { state } }) => state === 'up' || state === 'unchecked')
  return usable.length < 2 ? [] : usable
}

export async function findReceipts(rpc: NodeRpc, hashes: readonly Hex[]): Promise<(SeenReceipt | undefined)[]> {
  return (await seenAnywhere(rpc, hashes)).map((seen) => (seen === 'unread' ? undefined : seen))
}

/**
 * Searches all usable nodes, since the preferred node may lack a receipt that another has. `unread`: none of them delivers it, and none reports that it has
 * none.
 */
async function seenAnywhere(
  rpc: NodeRpc,
  hashes: readonly Hex[],
): Promise<readonly (SeenReceipt | 'unread' | undefined)[]> {
  if (hashes.length === 0) return []
  // A node that does not respond sees nothing; `Rpc` logs it.
  const responses = await Promise.all(
    severalUsable(rpc).map(({ rpc: one }) => watchAt(one, [], hashes).catch(() => undefined)),
  )
  return hashes.map((_, index) => {
    const shown = responses.flatMap((response) =>
      response === undefined ? [] : [{ receipt: response.receipts[index], head: atLeast(response.head, rpc) }],
    )
    const seen = shown.flatMap(({ receipt, head }) =>
      receipt === undefined || receipt === 'unread' || receipt.blockNumber > head.number ? [] : [{ receipt, head }],
    )
    return mostShown(seen) ?? (shown.some(({ receipt }) => receipt === undefined) ? undefined : 'unread')
  })
}

/** The receipt that most of the nodes show, so that one node's invented receipt does not hide it. */
function mostShown(seen: readonly SeenReceipt[]): SeenReceipt | undefined {
  const counts = seen.map(({ receipt }) => seen.filter((other) => isSameReceipt(other.receipt, receipt)).length)
  return seen[counts.indexOf(Math.max(...counts))]
}

export async function lookUp(rpc: Rpc & NodeRpc, wanted: readonly Hex[]): Promise<LookUp> {
  const hashes = [...new Set(wanted)]
  const { head: ownHead, receipts: shownByOne } = await rpc.onOneNode((one) => watchAt(one, [], hashes))
  const head = atLeast(ownHead, rpc)
  const own = shownByOne.map((shown) =>
    typeof shown === 'object' && shown.blockNumber > head.number ? undefined : shown,
  )
  const open = hashes.filter((_, index) => typeof own[index] !== 'object')
  const elsewhere = await seenAnywhere(rpc, open)
  const found = new Map(
    hashes.map((hash, index): [Hex, ShownReceipt] => {
      const shown = own[index]
      if (typeof shown === 'object') return [hash, shown]
      const other = receiptOf(elsewhere[open.indexOf(hash)])
      return [hash, shown === undefined && other === 'unread' ? undefined : other]
    }),
  )
  return { head, receipts: wanted.map((hash) => found.get(hash)) }
}
