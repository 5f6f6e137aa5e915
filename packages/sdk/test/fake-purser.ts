import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { encodeHeader } from '../src/middleware/headers.ts'

export const apiKey = 'svc_test_sk_for-the-sdk-tests'
export const payer = '0x1111111111111111111111111111111111111111'
export const txHash = `0x${'ab'.repeat(32)}`

export interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Record<string, unknown>
}

/** What the fake does with a request: an answer, no answer for ever, or a broken connection. */
export type Doing =
  | {
      readonly status: number
      readonly body?: unknown
      readonly text?: string
      readonly headers?: Record<string, string>
    }
  | 'hang'
  | 'reset'

export interface FakePurser {
  readonly baseUrl: string
  readonly seen: SeenRequest[]
  /** Requests seen whose path ends so. */
  readonly calls: (end: string) => SeenRequest[]
  /** What to do with requests whose path ends so, in place of what the contract says; the last one given lasts. */
  readonly script: (end: string, ...doings: Doing[]) => void
  readonly stop: () => Promise<void>
}

/** A Purser of the outside, over real HTTP, that keeps the contract of challenge, verify and settle. */
export async function startFakePurser(): Promise<FakePurser> {
  const seen: SeenRequest[] = []
  const scripts = new Map<string, Doing[]>()
  const used = new Set<string>()
  let baseUrl = ''
  const server = createServer(async (req, res) => {
    const body = await readJson(req)
    const path = req.url ?? ''
    seen.push({ method: req.method ?? '', path, headers: req.headers, body })
    const doings = scripts.get([...scripts.keys()].find((end) => path.endsWith(end)) ?? '')
    const doing = doings?.length === 1 ? doings[0] : doings?.shift()
    perform(req, res, doing ?? byContract(path, body, used, baseUrl))
  })
  baseUrl = await listen(server)
  return {
    baseUrl,
    seen,
    calls: (end) => seen.filter(({ path }) => path.endsWith(end)),
    script: (end, ...doings) => scripts.set(end, doings),
    stop: () => close(server),
  }
}

/** A problem record with its status, as the service sends it. */
export function problem(
  status: number,
  code: string,
  members: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Doing {
  const record = {
    type: `http://purser.test/problems/${code}`,
    title: code,
    status,
    detail: `inside: ${code}`,
    ...members,
  }
  return { status, body: { ...record, requestId: 'req_fake' }, headers }
}

export async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return `http://127.0.0.1:${address.port}`
}

export async function close(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeAllConnections()
  await closed
}

function byContract(path: string, body: Record<string, unknown>, used: Set<string>, baseUrl: string): Doing {
  if (path.endsWith('/payments/challenge')) return challengeAnswer(body)
  if (path.endsWith('/payments/settle')) return { status: 200, body: { txHash, settledAt: '2026-11-21T00:00:02.000Z' } }
  if (!path.endsWith('/payments/verify')) return problem(404, 'not-found', { type: `${baseUrl}/problems/not-found` })
  const credential = String(body.credential)
  if (credential === 'stub_payment_accepted')
    return { status: 200, body: verification({ settlementPending: false, payer: null }) }
  if (used.has(credential)) return problem(409, 'duplicate-payment')
  used.add(credential)
  return { status: 200, body: verification({}) }
}

export function verification(changed: Record<string, unknown>): Record<string, unknown> {
  return {
    valid: true,
    paymentId: 'pay_01',
    protocol: 'x402',
    amount: '0.01',
    coin: 'USDC',
    payer,
    txHash: null,
    settledAt: null,
    settlementPending: true,
    settlementToken: 'settlement-token-secret',
    ...changed,
  }
}

let challenges = 0

function challengeAnswer(body: Record<string, unknown>): Doing {
  const one = () => {
    const extra = { challenge: ++challenges }
    const accepts = [{ scheme: 'exact', network: 'eip155:84532', amount: '10000', payTo: payer, extra }]
    return {
      x402: encodeHeader({ x402Version: 2, error: 'Payment required', resource: { url: body.resource }, accepts }),
      x402V1: {
        x402Version: 1,
        error: 'Payment required',
        accepts: [{ scheme: 'exact', network: 'base-sepolia', extra }],
      },
      mpp: null,
      expiresAt: new Date(Date.now() + 300_000).toISOString(),
    }
  }
  return { status: 200, body: typeof body.count === 'number' ? Array.from({ length: body.count }, one) : one() }
}

function perform(req: IncomingMessage, res: ServerResponse, doing: Doing): void {
  if (doing === 'hang') return
  if (doing === 'reset') return void req.socket.destroy()
  const type = doing.status >= 400 ? 'application/problem+json' : 'application/json'
  res.writeHead(doing.status, { 'content-type': type, 'x-request-id': 'req_fake', ...doing.headers })
  res.end(doing.text ?? (doing.body === undefined ? '' : JSON.stringify(doing.body)))
}

async function readJson(req: IncomingMessage): Promise<Record<string, unknown>> {
  let text = ''
  for await (const chunk of req.setEncoding('utf8')) text += chunk
  return text === '' ? {} : JSON.parse(text)
}
