import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { isRecord } from './rpc.ts'

/**
 * A fault of the node: slow, silent, unreachable, failing, wrong results, rate limited, or executes the request and
 * loses the response.
 */
export type FaultMode =
  | { kind: 'pass' }
  | { kind: 'delay'; delayMs: number }
  | { kind: 'hang' }
  | { kind: 'drop' }
  | { kind: 'lose-answer' }
  | { kind: 'error500' }
  | { kind: 'garbage' }
  | { kind: 'wrong' }
  | { kind: 'rate-limit' }

export type FaultProxy = {
  url: string
  /** HTTP requests so far, whatever their outcome. */
  readonly requests: number
  /** The JSON-RPC methods so far, in order. Those inside a batch count one by one. */
  readonly methods: readonly string[]
  /** Applies from now on. With `methods`, only to requests with one of them; the others pass. */
  set(mode: FaultMode | FaultMode['kind'], methods?: readonly string[]): void
  stop(): Promise<void>
}

type State = { mode: FaultMode; only: readonly string[] | undefined; requests: number; methods: string[] }
type Exchange = { body: Buffer; response: ServerResponse; target: URL; agent: Agent }

/**
 * A JSON-RPC proxy between a client and a real node, with faults that a test sets, to prove how the service handles a
 * bad node.
 */
export async function startFaultProxy(targetUrl: string): Promise<FaultProxy> {
  const target = new URL(targetUrl)
  const agent = new Agent({ keepAlive: true })
  const state: State = { mode: { kind: 'pass' }, only: undefined, requests: 0, methods: [] }
  const server = createServer((incoming, response) => {
    state.requests += 1
    respond(incoming, { response, target, agent }, state).catch(() => response.destroy())
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    get requests() {
      return state.requests
    },
    get methods() {
      return state.methods
    },
    set(mode, methods) {
      state.mode = typeof mode === 'string' ? named(mode) : mode
      state.only = methods
    },
    stop() {
      agent.destroy()
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

async function respond(incoming: IncomingMessage, rest: Omit<Exchange, 'body'>, state: State): Promise<void> {
  const body = await readAll(incoming)
  const calls = parseCalls(body)
  state.methods.push(...calls.map(({ method }) => method))
  const { mode, only } = state
  const concerns = only === undefined || calls.some(({ method }) => only.includes(method))
  return act(concerns ? mode : { kind: 'pass' }, { ...rest, body })
}

async function act(mode: FaultMode, exchange: Exchange): Promise<void> {
  const { response, body } = exchange
  switch (mode.kind) {
    case 'pass':
      return forward(exchange)
    case 'delay':
      await delay(mode.delayMs)
      return forward(exchange)
    case 'hang':
      return
    case 'drop':
      response.socket?.destroy()
      return
    case 'lose-answer':
      await ask(exchange)
      response.socket?.destroy()
      return
    case 'error500':
      return send(response, 500, '{"error":"internal error at http://127.0.0.1/secret-node-key"}')
    case 'garbage':
      return send(response, 200, '<html>Bad gateway</html>')
    case 'wrong':
      return send(response, 200, wrongResponse(body))
    case 'rate-limit':
      response.setHeader('retry-after', '1')
      return send(response, 429, '{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"rate limit exceeded"}}')
  }
}

async function forward(exchange: Exchange): Promise<void> {
  const { status, text } = await ask(exchange)
  send(exchange.response, status, text)
}

function ask({ body, target, agent }: Exchange): Promise<{ status: number; text: Buffer }> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': body.length }
    const outgoing = request(target, { method: 'POST', agent, headers }, (response) => {
      readAll(response).then((text) => resolve({ status: response.statusCode ?? 502, text }), reject)
    })
    outgoing.once('error', reject)
    outgoing.end(body)
  })
}

function send(response: ServerResponse, status: number, text: string | Buffer): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(text)
}

/** Well-formed JSON-RPC with a result of the wrong type for every method. */
function wrongResponse(body: Buffer): string {
  const responses = parseCalls(body).map(({ id }) => ({ jsonrpc: '2.0', id, result: { unexpected: [true, -1, 'zz'] } }))
  return JSON.stringify(body.toString('utf8').trimStart().startsWith('[') ? responses : responses[0])
}

function parseCalls(body: Buffer): { id: unknown; method: string }[] {
  try {
    const parsed: unknown = JSON.parse(body.toString('utf8'))
    const calls: unknown[] = Array.isArray(parsed) ? parsed : [parsed]
    return calls.flatMap((call) => (isRecord(call) ? [{ id: call.id, method: String(call.method) }] : []))
  } catch {
    return []
  }
}

function named(kind: FaultMode['kind']): FaultMode {
  return kind === 'delay' ? { kind, delayMs: 0 } : { kind }
}

async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address: AddressInfo | string | null = server.address()
      if (address !== null && typeof address === 'object') resolve(address.port)
      else reject(new Error('no port'))
    })
  })
}
