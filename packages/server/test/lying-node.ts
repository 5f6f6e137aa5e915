import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'

const Call = z.object({ id: z.number(), method: z.string(), params: z.array(z.unknown()).default([]) })
type Call = z.output<typeof Call>

/** What a node says to one call. */
export type Said =
  | { readonly result: unknown }
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: string } }

/** Answers a call in the node's stead; `truth` asks the real node, as often as it is called. */
export type Lie = (asked: { readonly params: readonly unknown[]; truth(): Promise<Said> }) => Promise<Said> | Said

export interface LyingNode {
  readonly url: string
  /** How often a method was asked for. */
  asked(method: string): number
  /** From now on, until it tells the truth again. */
  lie(method: string, lie: Lie): void
  /** Answers every request with this many bytes of JSON that is none of an answer. */
  flood(bytes: number): void
  /** No lies any more. */
  tellTheTruth(): void
  stop(): Promise<void>
}

interface State {
  readonly lies: Map<string, Lie>
  readonly asked: Map<string, number>
  floodBytes: number
}

/** A real node behind one that answers some of the calls as a test says: well-formed, of the right shape, and untrue. */
export async function startLyingNode(realUrl: string): Promise<LyingNode> {
  const state: State = { lies: new Map(), asked: new Map(), floodBytes: 0 }
  const server = createServer((incoming, response) => {
    respond(incoming, response, { realUrl, state }).catch(() => response.destroy())
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    asked: (method) => state.asked.get(method) ?? 0,
    lie: (method, lie) => void state.lies.set(method, lie),
    flood(bytes) {
      state.floodBytes = bytes
    },
    tellTheTruth() {
      state.lies.clear()
      state.floodBytes = 0
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
  const answer = async (asked: unknown): Promise<unknown> => {
    const call = Call.parse(asked)
    state.asked.set(call.method, (state.asked.get(call.method) ?? 0) + 1)
    const truth = (): Promise<Said> => ask(realUrl, call)
    const said = await (state.lies.get(call.method)?.({ params: call.params, truth }) ?? truth())
    return { jsonrpc: '2.0', id: call.id, ...said }
  }
  if (!Array.isArray(body)) return void response.end(JSON.stringify(await answer(body)))
  const answers: unknown[] = []
  for (const asked of body) answers.push(await answer(asked))
  response.end(JSON.stringify(answers))
}

/** One piece after the other, so that whoever stops reading is noticed. */
async function flood(response: ServerResponse, bytes: number): Promise<void> {
  const piece = Buffer.alloc(65_536, ' ')
  for (let sent = 0; sent < bytes && !response.destroyed; sent += piece.length) {
    if (!response.write(piece)) await new Promise((resolve) => response.once('drain', resolve).once('close', resolve))
  }
  response.end('[]')
}

const Answered = z.object({ result: z.unknown(), error: z.unknown() }).partial()

async function ask(url: string, call: Call): Promise<Said> {
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...call }) })
  const { result, error } = Answered.parse(await answer.json())
  return error === undefined ? { result } : { error: error as Extract<Said, { error: unknown }>['error'] }
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
