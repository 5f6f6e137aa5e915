import { type Hex, multicall3Address, permit2Proxies } from '@purser/protocol'
import { isRecord } from '../../src/chain/rpc/rpc.ts'
import { type Outbound, OutboundError } from '../../src/platform/outbound.ts'
import { gasPrice, type SimBlock, type SimChain, type SimReceipt } from './chain.ts'
import type { Chance } from './chance.ts'
import type { Liar } from './lies.ts'
import {
  copyOf,
  decodeCall,
  encodeResults,
  innerCalls,
  readToken,
  runCall,
  type SimLog,
  type TokenState,
} from './token.ts'

/** What a node does to those who ask it. */
export interface Faults {
  /** Answers nothing. */
  isDown: boolean
  /** Sees no new blocks, also where a reorganization undid those that it has. */
  isLate: boolean
  /** Has blocks and not yet their receipts. */
  isIndexing: boolean
  /** Serves logs of so many blocks at most. */
  logBlocksMax: number
  /** The share of answers to which it lies; 0 for an honest one. */
  lies: number
  /** Keeps what it is sent to itself. */
  isSilent: boolean
}

export const noFaults = (): Faults => ({
  isDown: false,
  isLate: false,
  isIndexing: false,
  logBlocksMax: 1_000_000,
  lies: 0,
  isSilent: false,
})

export class SimNode {
  readonly url: string
  readonly #chain: SimChain
  readonly #chainId: number
  readonly #settler: string
  readonly #chance: Chance
  readonly #liar: Liar
  faults: Faults = noFaults()
  #view: readonly SimBlock[]

  constructor(
    place: number,
    options: {
      readonly chain: SimChain
      readonly chainId: number
      readonly settler: string
      readonly chance: Chance
      readonly liar: Liar
    },
  ) {
    this.url = `http://node-${place}.invalid/`
    this.#chain = options.chain
    this.#chainId = options.chainId
    this.#settler = options.settler.toLowerCase()
    this.#chance = options.chance
    this.#liar = options.liar
    this.#view = options.chain.blocks
  }

  /** Sees what is canonical now, unless it is late. */
  sync(): void {
    if (!this.faults.isLate) this.#view = this.#chain.blocks
  }

  answer(method: string, params: readonly unknown[]): unknown {
    const truth = this.#truth(method, params)
    return this.faults.lies > 0 && this.#chance.happens(this.faults.lies)
      ? this.#liar.lie(method, params, truth)
      : truth
  }

  #truth(method: string, params: readonly unknown[]): unknown {
    if (method === 'eth_chainId') return quantity(this.#chainId)
    if (method === 'eth_blockNumber') return quantity(this.#head().number)
    if (method === 'eth_getBlockByNumber') return this.#shown(this.#blockOf(params[0]))
    if (method === 'eth_maxPriorityFeePerGas') return quantity(1_000_000)
    if (method === 'eth_getBalance') return quantity(10n ** 20n)
    if (method === 'eth_getTransactionCount') return quantity(this.#countOf(String(params[0]), params[1]))
    if (method === 'eth_getTransactionReceipt') return this.#receiptOf(String(params[0]))
    if (method === 'eth_getTransactionByHash') return this.#transactionOf(String(params[0]))
    if (method === 'eth_getCode') return this.#codeOf(String(params[0]).toLowerCase())
    if (method === 'eth_getLogs') return this.#logsOf(params[0])
    if (method === 'eth_sendRawTransaction') return this.#send(params[0])
    if (method === 'eth_call') return this.#call(params[0], this.#blockOf(params[1]))
    throw new RpcError(-32_601, `no method ${method}`)
  }

  #head(): SimBlock {
    const head = this.#view.at(-1)
    if (head === undefined) throw new Error('a node has a first block')
    return head
  }

  #blockOf(block: unknown): SimBlock | undefined {
    if (isRecord(block)) {
      const found = this.#view.find(({ hash }) => hash === block.blockHash)
      if (found === undefined) throw new RpcError(-32_000, 'the block is not canonical')
      return found
    }
    if (block === 'finalized' || block === 'safe') return this.#view.at(-4) ?? this.#view[0]
    return typeof block === 'string' && block.startsWith('0x') ? this.#view[Number(block)] : this.#head()
  }

  #shown(block: SimBlock | undefined): unknown {
    if (block === undefined) return null
    const { number, hash, parentHash, timestamp, receipts } = block
    return {
      number: quantity(number),
      hash,
      parentHash,
      timestamp: quantity(timestamp),
      baseFeePerGas: quantity(gasPrice),
      transactions: [...receipts.keys()],
    }
  }

  #countOf(account: string, block: unknown): bigint {
    return account.toLowerCase() === this.#settler ? (this.#blockOf(block)?.settlerNonce ?? 0n) : 0n
  }

  #receiptOf(hash: string): unknown {
    if (this.faults.isIndexing) return null
    const block = this.#view.findLast(({ receipts }) => receipts.has(hash))
    const receipt = block?.receipts.get(hash)
    return block === undefined || receipt === undefined ? null : shownReceipt(block, receipt)
  }

  #logsOf(filter: unknown): unknown {
    if (!isRecord(filter) || !Array.isArray(filter.topics)) throw new RpcError(-32_602, 'no filter')
    const [from, to] = [Number(filter.fromBlock), Number(filter.toBlock)]
    if (to - from + 1 > this.faults.logBlocksMax) throw new RpcError(-32_005, 'the range is too long')
    return this.#view
      .slice(from, to + 1)
      .flatMap((block) =>
        [...block.receipts.values()].flatMap(({ logs, transaction }) =>
          shownLogs(block, transaction.hash, logs, filter),
        ),
      )
  }

  #transactionOf(hash: string): unknown {
    const transaction = this.#view.findLast(({ receipts }) => receipts.has(hash))?.receipts.get(hash)?.transaction
    return transaction === undefined ? null : shownTransaction(hash, transaction)
  }

  #codeOf(account: string): string {
    if (contracts.has(account)) return '0x01'
    return this.#head().state.burners.has(account) ? '0xef0100' : '0x'
  }

  #send(raw: unknown): unknown {
    if (this.faults.isSilent) return `0x${'0'.repeat(64)}`
    const taken = this.#chain.take(raw as Hex)
    if ('refusal' in taken) throw new RpcError(-32_000, taken.refusal)
    return taken.hash
  }

  #call(call: unknown, block: SimBlock | undefined): unknown {
    if (!isRecord(call) || block === undefined) throw new RpcError(-32_602, 'no call')
    const [to, data] = [String(call.to), String(call.data) as Hex]
    const state = copyOf(block.state)
    const around = { now: block.timestamp, isTrial: true, sender: String(call.from ?? '0x') }
    const results = innerCalls(to, data).map((inner) => this.#run(state, inner, around))
    if (to.toLowerCase() === multicall3Address.toLowerCase()) return encodeResults(results)
    const [only] = results
    if (only?.success !== true) throw new RpcError(3, 'execution reverted', only?.returnData)
    return only.returnData
  }

  #run(
    state: TokenState,
    { target, data }: { readonly target: string; readonly data: string },
    around: { readonly now: bigint; readonly isTrial: boolean; readonly sender: string },
  ): { readonly success: boolean; readonly returnData: Hex } {
    const read = readToken(this.#chain.rules, state, data)
    if (read !== undefined) return { success: true, returnData: read }
    const ran = runCall(this.#chain.rules, state, decodeCall(target, data), around)
    if (ran.outcome === 'ok') return { success: true, returnData: '0x' }
    return { success: false, returnData: ran.outcome === 'reverted' ? ran.data : '0x' }
  }
}

export class RpcError extends Error {
  readonly code: number
  readonly data: string | undefined
  constructor(code: number, message: string, data?: string) {
    super(message)
    this.code = code
    this.data = data
  }
}

const contracts: ReadonlySet<string> = new Set(Object.values(permit2Proxies).map((proxy) => proxy.toLowerCase()))

/** Those of a transaction's logs that a filter is for, as a node shows them. */
export function shownLogs(block: SimBlock, hash: string, logs: readonly SimLog[], filter: unknown): readonly unknown[] {
  if (!isRecord(filter) || !Array.isArray(filter.topics)) return []
  const wanted = filter.topics.map((topic: unknown) =>
    (Array.isArray(topic) ? topic : [topic]).map((one) => String(one).toLowerCase()),
  )
  const place = { transactionHash: hash, blockNumber: quantity(block.number), blockHash: block.hash }
  return logs
    .filter((log) => wanted.every((own, index) => own.includes(log.topics[index]?.toLowerCase() ?? '')))
    .map((log) => ({ ...log, ...place }))
}

export function shownTransaction(
  hash: string,
  { to, input }: { readonly to: string; readonly input: string },
): unknown {
  return { hash, to, input }
}

export function quantity(value: number | bigint): string {
  return `0x${value.toString(16)}`
}

export function shownReceipt(
  block: SimBlock,
  {
    transaction,
    status,
    gasUsed,
    logs,
  }: Omit<SimReceipt, 'transaction' | 'moved'> & { readonly transaction: { readonly hash: string } },
): unknown {
  return {
    transactionHash: transaction.hash,
    blockNumber: quantity(block.number),
    blockHash: block.hash,
    status,
    gasUsed: quantity(gasUsed),
    effectiveGasPrice: quantity(gasPrice),
    logs,
  }
}

/** The way to the nodes, without any socket. `around` is where a process may be interrupted. */
export function outboundTo(nodes: readonly SimNode[], around: <T>(doing: () => Promise<T>) => Promise<T>): Outbound {
  const refused = () => Promise.reject(new Error('only nodes are there'))
  return {
    postJson: (url, body) =>
      around(async () => {
        const node = nodes.find((one) => one.url === url)
        if (node === undefined || node.faults.isDown) throw new OutboundError('timeout')
        const request: unknown = JSON.parse(body)
        return Array.isArray(request) ? request.map((call) => answerOne(node, call)) : answerOne(node, request)
      }),
    exchange: refused,
    download: refused,
    close: async () => undefined,
  }
}

function answerOne(node: SimNode, request: unknown): unknown {
  if (!isRecord(request) || !Array.isArray(request.params)) throw new Error('no request')
  const head = { jsonrpc: '2.0', id: request.id }
  try {
    return { ...head, result: node.answer(String(request.method), request.params) }
  } catch (error) {
    if (!(error instanceof RpcError)) throw error
    return {
      ...head,
      error: { code: error.code, message: error.message, ...(error.data !== undefined && { data: error.data }) },
    }
  }
}
