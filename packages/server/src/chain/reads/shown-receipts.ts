import type { Address, Hex } from '@purser/protocol'
import type { Head, LookUp, Receipt, SeenReceipt, ShownReceipt, Watch } from '../port.ts'
import { readHead, readQuantity, readReceipt, resultOf } from '../rpc/read.ts'
import { isSameReceipt } from '../rpc/receipts.ts'
import type { NodeRpc, Rpc, RpcResponse } from '../rpc/rpc.ts'

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
function atLeast(head: Head, { agreedHead }: NodeRpc): Head {
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
  const [seen] = await findReceipts(rpc, [hash])
  return seen?.receipt ?? (await ownReceipt(rpc, hash))
}

export async function findReceipts(rpc: NodeRpc, hashes: readonly Hex[]): Promise<(SeenReceipt | undefined)[]> {
  return (await seenAnywhere(rpc, hashes)).map((seen) => (seen === 'unread' ? undefined : seen))
}

/**
 * Searches all usable nodes, since the preferred node may lack a receipt that another has. `unread`: none of them delivers it, and none reports that it has
 * none.
 */
async function seenAnywhere(
  { voters }: NodeRpc,
  hashes: readonly Hex[],
): Promise<readonly (SeenReceipt | 'unread' | undefined)[]> {
  if (hashes.length === 0) return []
  const usable = voters.filter(({ node: { state } }) => state === 'up' || state === 'unchecked')
  const nodes = usable.length < 2 ? [] : usable
  // A node that does not respond sees nothing; `Rpc` logs it.
  const responses = await Promise.all(nodes.map(({ rpc }) => watchAt(rpc, [], hashes).catch(() => undefined)))
  return hashes.map((_, index) => {
    const shown = responses.flatMap((response) =>
      response === undefined ? [] : [{ receipt: response.receipts[index], head: response.head }],
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
  const { head: ownHead, finalized, own: shownByOne } = await rpc.onOneNode((one) => lookUpAt(one, hashes))
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
  return { head, finalized, receipts: wanted.map((hash) => found.get(hash)) }
}

async function lookUpAt(one: Rpc, hashes: readonly Hex[]) {
  const [head, finalized, ...responses] = await one.batch([
    { method: 'eth_getBlockByNumber', params: ['latest', false] },
    { method: 'eth_getBlockByNumber', params: ['finalized', false] },
    ...hashes.map(receiptCall),
  ])
  const own = hashes.map((hash, index) => shownIn(responses[index], hash))
  return { head: readHead(resultOf(head)), finalized: readHead(resultOf(finalized)), own }
}
