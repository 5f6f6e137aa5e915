import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { request } from 'undici'
import { type Hex, keccak256 } from 'viem'
import { z } from 'zod'

const Call = z.object({ id: z.number(), method: z.string(), params: z.array(z.unknown()).default([]) })
type Call = z.output<typeof Call>

/** A node's answer to one call. */
export type NodeResponse =
  | { readonly result: unknown }
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: string } }

/** Answers a call instead of the node; `truth` calls the real node each time. */
export type Lie = (requested: {
  readonly params: readonly unknown[]
  truth(): Promise<NodeResponse>
}) => Promise<NodeResponse> | NodeResponse

export interface LyingNode {
  readonly url: string
  /** The number of calls of a method. */
  requested(method: string): number
  /** Lies from now on, until `tellTheTruth`. */
  lie(method: string, lie: Lie): void
  /**
   * From now on answers with the present head, well-formed and in time, and does not forward transactions, like a node
   * that has lost its peers.
   */
  freeze(): Promise<void>
  /** Answers every request with this many bytes of JSON that is not a valid answer. */
  flood(bytes: number): void
  /** Removes all lies. */
  tellTheTruth(): void
  stop(): Promise<void>
}

/** Shows every block as of a far higher base fee. */
export const withHighBaseFee: Lie = async ({ truth }) => {
  const reply = await truth()
  const block = 'result' in reply ? reply.result : undefined
  return block ? { result: { ...Object(block), baseFeePerGas: `0x1${'0'.repeat(25)}` } } : reply
}

interface State {
  readonly lies: Map<string, Lie>
  readonly requested: Map<string, number>
  floodBytes: number
  frozenAt: bigint | undefined
}

/** A proxy of a real node that answers some calls with the false but well-formed results of a test. */
export async function startLyingNode(realUrl: string): Promise<LyingNode> {
  const state: State = { lies: new Map(), requested: new Map(), floodBytes: 0, frozenAt: undefined }
  const server = createServer((incoming, response) => {
    respond(incoming, response, { realUrl, state }).catch(() => response.destroy())
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    requested: (method) => state.requested.get(method) ?? 0,
    lie: (method, lie) => void state.lies.set(method, lie),
    async freeze() {
      const reply = await ask(realUrl, { id: 1, method: 'eth_blockNumber', params: [] })
      state.frozenAt = 'result' in reply ? BigInt(String(reply.result)) : undefined
    },
    flood(bytes) {
      state.floodBytes = bytes
    },
    tellTheTruth() {
      state.lies.clear()
      state.floodBytes = 0
      state.frozenAt = undefined
    },
    stop() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

async function respond(
  incoming: IncomingMessage,
  response: ServerResponse,
  { realUrl, state }: { readonly realUrl: string; readonly state: State },
): Promise<void> {
  const body: unknown = JSON.parse(await readAll(incoming))
  response.writeHead(200, { 'content-type': 'application/json' })
  if (state.floodBytes > 0) return flood(response, state.floodBytes)
  const answer = async (requested: unknown): Promise<unknown> => {
    const call = Call.parse(requested)
    state.requested.set(call.method, (state.requested.get(call.method) ?? 0) + 1)
    const { frozenAt } = state
    const truth = (): Promise<NodeResponse> =>
      frozenAt === undefined ? ask(realUrl, call) : queryFrozen(realUrl, call, frozenAt)
    const reply = await (state.lies.get(call.method)?.({ params: call.params, truth }) ?? truth())
    return { jsonrpc: '2.0', id: call.id, ...reply }
  }
  if (!Array.isArray(body)) return void response.end(JSON.stringify(await answer(body)))
  const answers: unknown[] = []
  for (const requested of body) answers.push(await answer(requested))
  response.end(JSON.stringify(answers))
}

/** The node's answer to the call at the time when its head had this number. */
async function queryFrozen(realUrl: string, call: Call, head: bigint): Promise<NodeResponse> {
  const headNumber = `0x${head.toString(16)}`
  const [first] = call.params
  if (call.method === 'eth_blockNumber') return { result: headNumber }
  if (call.method === 'eth_sendRawTransaction') return { result: keccak256(first as Hex) }
  const params = call.params.map((param) => (param === 'latest' || param === 'pending' ? headNumber : param))
  const named = params.map(numberNamed).find((number) => number !== undefined)
  if (named !== undefined && named > head) return { result: null }
  if (await isLater(realUrl, params, head)) return { error: { code: -32_000, message: 'header not found' } }
  const reply = await ask(realUrl, { ...call, params })
  if (call.method !== 'eth_getTransactionReceipt' || !('result' in reply)) return reply
  const block = numberNamed(Object(reply.result).blockNumber)
  return block !== undefined && block > head ? { result: null } : reply
}

function numberNamed(param: unknown): bigint | undefined {
  return typeof param === 'string' && /^0x[0-9a-f]{1,16}$/i.test(param) ? BigInt(param) : undefined
}

/** Whether one of the parameters names a block above the head by its hash (EIP-1898). */
async function isLater(realUrl: string, params: readonly unknown[], head: bigint): Promise<boolean> {
  const hash = params.map((param) => Object(param).blockHash).find((found) => found !== undefined)
  if (hash === undefined) return false
  const reply = await ask(realUrl, { id: 1, method: 'eth_getBlockByHash', params: [hash, false] })
  return !('result' in reply) || (numberNamed(Object(reply.result).number) ?? head + 1n) > head
}

/** Writes one piece after the other, so that it notices when the client stops reading. */
async function flood(response: ServerResponse, bytes: number): Promise<void> {
  const piece = Buffer.alloc(65_536, ' ')
  for (let sent = 0; sent < bytes && !response.destroyed; sent += piece.length) {
    if (!response.write(piece)) await new Promise((resolve) => response.once('drain', resolve).once('close', resolve))
  }
  response.end('[]')
}

const Answered = z.object({ result: z.unknown(), error: z.unknown() }).partial()

async function ask(url: string, call: Call): Promise<NodeResponse> {
  const headers = { 'content-type': 'application/json' }
  const response = await request(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...call }) })
  const { result, error } = Answered.parse(await response.body.json())
  return error === undefined ? { result } : { error: error as Extract<NodeResponse, { error: unknown }>['error'] }
}

async function readAll(stream: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}
