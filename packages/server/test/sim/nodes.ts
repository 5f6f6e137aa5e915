import { type Hex, multicall3Address, permit2Proxies } from '@purser/protocol'
import { isRecord } from '../../src/chain/rpc/rpc.ts'
import { type Outbound, OutboundError } from '../../src/platform/outbound.ts'
import { countIn, type SimBlock, type SimChain, type SimReceipt, type SimTransaction } from './chain.ts'
import type { Chance } from './chance.ts'
import type { Liar } from './lies.ts'
import {
  coinOf,
  copyOf,
  decodeCall,
  encodeResults,
  innerCalls,
  type Ran,
  readToken,
  runCall,
  type SimLog,
  type TokenState,
} from './token.ts'

/** How a node treats its callers. */
export interface Faults {
  /** Refuses connections. */
  isDown: boolean
  /** Never responds in time. Half of the requests are executed nevertheless; callers cannot know which. */
  isHanging: boolean
  /** Leaves calls of some batches unanswered, and answers others in another order. */
  isPartial: boolean
  /** Sees no new blocks, also after a reorganization has undone blocks that it has. */
  isLate: boolean
  /** Has blocks but not yet their receipts. */
  isIndexing: boolean
  /** Serves logs of at most this many blocks. */
  logBlocksMax: number
  /** The share of its answers that are lies; 0 for an honest node. */
  lies: number
  /** Does not broadcast the transactions that it accepts. */
  isSilent: boolean
}

export const noFaults = (): Faults => ({
  isDown: false,
  isHanging: false,
  isPartial: false,
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
  readonly #chance: Chance
  readonly #liar: Liar
  faults: Faults = noFaults()
  #view: readonly SimBlock[]

  constructor(
    place: number,
    options: {
      readonly chain: SimChain
      readonly chainId: number
      readonly chance: Chance
      readonly liar: Liar
    },
  ) {
    this.url = `http://node-${place}.${options.chainId}.invalid/`
    this.#chain = options.chain
    this.#chainId = options.chainId
    this.#chance = options.chance
    this.#liar = options.liar
    this.#view = options.chain.blocks
  }

  /** Takes over the canonical chain, unless it is late. */
  sync(): void {
    if (!this.faults.isLate) this.#view = this.#chain.blocks
  }

  /** The response to a request of one or several calls; undefined if none comes in time. */
  respond(request: unknown): unknown {
    const { isHanging, isPartial } = this.faults
    if (isHanging && this.#chance.happens(0.5)) return undefined
    const answers = [request].flat().map((call) => answerOne(this, call))
    if (isHanging) return undefined
    if (!Array.isArray(request)) return answers[0]
    return isPartial ? this.#chance.pick([answers, answers.toReversed(), this.#someOf(answers)]) : answers
  }

  #someOf(answers: readonly unknown[]): readonly unknown[] {
    return answers.filter(() => this.#chance.happens(0.5))
  }

  answer(method: string, params: readonly unknown[]): unknown {
    const truth = this.#truth(method, params)
    return this.faults.lies > 0 && (this.#liar.isConstant || this.#chance.happens(this.faults.lies))
      ? this.#liar.lie(method, params, truth)
      : truth
  }

  #truth(method: string, params: readonly unknown[]): unknown {
    if (method === 'eth_chainId') return quantity(this.#chainId)
    if (method === 'eth_blockNumber') return quantity(this.#head().number)
    if (method === 'eth_getBlockByNumber') return this.#shown(this.#blockOf(params[0]), params[1] === true)
    if (method === 'eth_maxPriorityFeePerGas') return quantity(1_000_000)
    if (method === 'eth_getBalance') return quantity(this.#coinOf(String(params[0]), params[1]))
    if (method === 'eth_getTransactionCount') return quantity(this.#countOf(String(params[0]), params[1]))
    if (method === 'eth_getTransactionReceipt') return this.#receiptOf(String(params[0]))
    if (method === 'eth_getTransactionByHash') return this.#transactionOf(String(params[0]))
    if (method === 'eth_getCode') return this.#codeOf(String(params[0]).toLowerCase())
    if (method === 'eth_getLogs') return this.#logsOf(params[0])
    if (method === 'eth_sendRawTransaction') return this.#send(params[0])
    if (method === 'eth_call' && Object.keys(params[2] ?? {}).length === 0)
      return this.#call(params[0], this.#blockOf(params[1]))
    if (method === 'eth_estimateGas') return this.#estimate(params[0])
    if (method === 'eth_simulateV1') return this.#simulate(params[0])
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

  #shown(block: SimBlock | undefined, isWhole: boolean): unknown {
    if (block === undefined) return null
    const { number, hash, parentHash, timestamp, receipts, baseFee } = block
    return {
      number: quantity(number),
      hash,
      parentHash,
      timestamp: quantity(timestamp),
      baseFeePerGas: quantity(baseFee),
      transactions: isWhole
        ? [...receipts.values()].map(({ transaction }) => shownMined(block, transaction))
        : [...receipts.keys()],
    }
  }

  #countOf(account: string, block: unknown): bigint {
    if (block === 'pending' && this.#head() === this.#chain.head) return this.#chain.pendingCount(account)
    const found = this.#blockOf(block)
    return found === undefined ? 0n : countIn(found, account)
  }

  #coinOf(account: string, block: unknown): bigint {
    const found = this.#blockOf(block)
    if (found === undefined) throw new RpcError(-32_000, 'no such block')
    return this.#chain.rules.contracts === undefined ? 10n ** 20n : coinOf(found.state, account)
  }

  #receiptOf(hash: string): unknown {
    if (this.faults.isIndexing) return null
    const block = this.#view.findLast(({ receipts }) => receipts.has(hash))
    const receipt = block?.receipts.get(hash)
    return block === undefined || receipt === undefined ? null : shownReceipt(block, receipt)
  }

  #logsOf(filter: unknown): unknown {
    if (!isRecord(filter) || !Array.isArray(filter.topics)) throw new RpcError(-32_602, 'no filter')
    if (filter.blockHash !== undefined) return this.#logsIn([this.#blockOf(filter) ?? this.#head()], filter)
    const [from, to] = [Number(filter.fromBlock), Number(filter.toBlock)]
    if (to - from + 1 > this.faults.logBlocksMax) throw new RpcError(-32_005, 'the range is too long')
    return this.#logsIn(this.#view.slice(from, to + 1), filter)
  }

  #logsIn(blocks: readonly SimBlock[], filter: unknown): unknown {
    return blocks.flatMap((block) =>
      [...block.receipts.values()].flatMap(({ logs, transaction, firstLog }) =>
        shownLogs(block, transaction.hash, logs, filter, firstLog),
      ),
    )
  }

  #transactionOf(hash: string): unknown {
    const block = this.#view.findLast(({ receipts }) => receipts.has(hash))
    const transaction = block?.receipts.get(hash)?.transaction
    return block === undefined || transaction === undefined ? null : shownMined(block, transaction)
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
    const results = innerCalls(to, data).map((inner) => this.#read(state, inner, around))
    if (to.toLowerCase() === multicall3Address.toLowerCase()) return encodeResults(results)
    const [only] = results
    if (only?.success !== true) throw new RpcError(3, 'execution reverted', only?.returnData)
    return only.returnData
  }

  #read(state: TokenState, inner: Inner, around: Around): { readonly success: boolean; readonly returnData: Hex } {
    const read = readToken(this.#chain.rules, state, inner)
    if (read !== undefined) return { success: true, returnData: read }
    const ran = this.#run(state, { ...inner, value: 0n }, around)
    if (ran.outcome === 'ok') return { success: true, returnData: '0x' }
    return { success: false, returnData: ran.outcome === 'reverted' ? ran.data : '0x' }
  }

  #run(state: TokenState, call: Inner & { readonly value: bigint }, around: Around): Ran {
    const { rules } = this.#chain
    return runCall(rules, state, decodeCall(rules, { ...call, sender: around.sender }), around)
  }

  #estimate(call: unknown): unknown {
    if (!isRecord(call)) throw new RpcError(-32_602, 'no call')
    const { state, timestamp: now } = this.#head()
    const ran = this.#run(copyOf(state), innerOf(call), { now, isTrial: true, sender: String(call.from) })
    if (ran.outcome === 'ok') return quantity(25_000n + ran.gas)
    throw new RpcError(3, 'execution reverted', ran.outcome === 'reverted' ? ran.data : '0x')
  }

  /** Runs calls one after the other on a discarded copy of the newest state. */
  #simulate(requested: unknown): unknown {
    const block: unknown =
      isRecord(requested) && Array.isArray(requested.blockStateCalls) ? requested.blockStateCalls[0] : undefined
    if (!isRecord(block) || !Array.isArray(block.calls)) throw new RpcError(-32_602, 'no calls')
    const { state: newest, timestamp: now } = this.#head()
    const state = copyOf(newest)
    const calls = block.calls.map((call: unknown) => {
      if (!isRecord(call)) throw new RpcError(-32_602, 'no call')
      const inner = innerOf(call)
      const read = readToken(this.#chain.rules, state, inner)
      if (read !== undefined) return { status: '0x1', returnData: read, gasUsed: '0x0' }
      const ran = this.#run(state, inner, { now, isTrial: true, sender: String(call.from) })
      if (ran.outcome === 'ok') return { status: '0x1', returnData: '0x', gasUsed: quantity(ran.gas) }
      return { status: '0x0', returnData: ran.outcome === 'reverted' ? ran.data : '0x', gasUsed: '0x0' }
    })
    return [{ calls }]
  }
}

interface Inner {
  readonly target: string
  readonly data: Hex
}

interface Around {
  readonly now: bigint
  readonly isTrial: boolean
  readonly sender: string
}

function innerOf({ to, data, value }: Readonly<Record<string, unknown>>): Inner & { readonly value: bigint } {
  return { target: String(to), data: String(data ?? '0x') as Hex, value: BigInt(String(value ?? '0x0')) }
}

class RpcError extends Error {
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
export function shownLogs(
  block: SimBlock,
  hash: string,
  logs: readonly SimLog[],
  filter: unknown,
  firstLog = 0,
): readonly unknown[] {
  if (!isRecord(filter) || !Array.isArray(filter.topics)) return []
  const addresses =
    filter.address === undefined ? undefined : [filter.address].flat().map((one) => String(one).toLowerCase())
  const wanted = filter.topics.map((topic: unknown) =>
    (Array.isArray(topic) ? topic : [topic]).map((one) => String(one).toLowerCase()),
  )
  const place = { transactionHash: hash, blockNumber: quantity(block.number), blockHash: block.hash }
  return logs
    .map((log, index) => ({ ...log, logIndex: quantity(firstLog + index) }))
    .filter(({ address }) => addresses?.includes(address.toLowerCase()) !== false)
    .filter((log) => wanted.every((own, index) => own.includes(log.topics[index]?.toLowerCase() ?? '')))
    .map((log) => ({ ...log, ...place }))
}

function shownMined({ number, hash: blockHash }: SimBlock, transaction: SimTransaction): unknown {
  const { hash, from, nonce = 0n, value } = transaction
  const place = { blockNumber: quantity(number), blockHash }
  return { ...place, ...shownTransaction(hash, transaction), from, nonce: quantity(nonce), value: quantity(value) }
}

export function shownTransaction(
  hash: string,
  { to, input }: { readonly to: string; readonly input: string },
): Readonly<Record<string, unknown>> {
  return { hash, to: to === '0x' ? null : to, input }
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
    firstLog = 0,
  }: Pick<SimReceipt, 'status' | 'gasUsed' | 'logs'> &
    Partial<Pick<SimReceipt, 'firstLog'>> & { readonly transaction: { readonly hash: string } },
): unknown {
  return {
    transactionHash: transaction.hash,
    blockNumber: quantity(block.number),
    blockHash: block.hash,
    status,
    gasUsed: quantity(gasUsed),
    effectiveGasPrice: quantity(block.baseFee),
    logs: logs.map((log, index) => ({ ...log, logIndex: quantity(firstLog + index) })),
  }
}

interface Connection {
  /** Runs a request, of which it gets the text. A process may die before and after it. */
  around(what: string, doing: () => Promise<unknown>): Promise<unknown>
  /** Lets the time pass for which a caller waits in vain. */
  wait(ms: number): Promise<void>
}

/** A connection to the nodes without sockets. */
export function outboundTo(nodes: readonly SimNode[], { around, wait }: Connection): Outbound {
  const refused = () => Promise.reject(new Error('only nodes can be reached'))
  return {
    async postJson(url, body, { timeoutMs }) {
      const response = await around(`${url} ${body}`, async () => {
        const node = nodes.find((one) => one.url === url)
        if (node === undefined || node.faults.isDown) throw new OutboundError('unreachable')
        return node.respond(JSON.parse(body))
      })
      if (response !== undefined) return response
      await wait(timeoutMs)
      throw new OutboundError('timeout')
    },
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
