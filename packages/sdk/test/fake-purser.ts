import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import {
  encodeMppJson,
  evmChargeRequest,
  formatChallenges,
  type MppChallenge,
  parseMppCredential,
  tempoChargeRequest,
} from '@purser/protocol'
import { encodeHeader } from '../src/middleware/headers.ts'
import { openFakeVaults } from './fake-vaults.ts'

export const apiKey = 'svc_test_sk_for-the-sdk-tests'
export const payer = '0x1111111111111111111111111111111111111111'
const token = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
export const txHash = `0x${'ab'.repeat(32)}`

interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Record<string, unknown>
}

/** The reaction of the fake to a request: a response, no response, or a broken connection. */
export type Doing =
  | {
      readonly status: number
      readonly body?: unknown
      readonly text?: string
      readonly headers?: Record<string, string>
      /** The answer leaves then. */
      readonly after?: Promise<void>
    }
  | 'hang'
  | 'reset'

export interface FakePurser {
  readonly baseUrl: string
  /** All requests but reports of deliveries and releases, which come after the answers at their own time. */
  readonly seen: SeenRequest[]
  /** Payments that were reported as delivered. */
  readonly delivered: string[]
  /** Releases of payments, by path and body. */
  readonly released: Pick<SeenRequest, 'path' | 'body'>[]
  /** Requests seen whose path ends so. */
  readonly calls: (end: string) => SeenRequest[]
  /** Reactions to requests whose path ends with this text, in place of those of the contract; the last one is repeated. */
  readonly script: (end: string, ...doings: Doing[]) => void
  readonly stop: () => Promise<void>
}

/** A Purser of the outside, over real HTTP, that keeps the contract of challenge, verify and settle. */
export async function startFakePurser(): Promise<FakePurser> {
  const seen: SeenRequest[] = []
  const delivered: string[] = []
  const released: Pick<SeenRequest, 'path' | 'body'>[] = []
  const scripts = new Map<string, Doing[]>()
  const used = new Set<string>()
  const vaults = openFakeVaults()
  let baseUrl = ''
  const server = createServer(async (req, res) => {
    const body = await readJson(req)
    const path = req.url ?? ''
    if (path.endsWith('/payments/delivered')) {
      const ids = Array.isArray(body.paymentIds) ? body.paymentIds : []
      delivered.push(...ids)
      return perform(req, res, { status: 200, body: { delivered: ids.length } })
    }
    if (path.endsWith('/release')) {
      released.push({ path, body })
      return perform(req, res, scripts.get('/release')?.shift() ?? { status: 200, body: {} })
    }
    seen.push({ method: req.method ?? '', path, headers: req.headers, body })
    const doings = scripts.get([...scripts.keys()].find((end) => path.endsWith(end)) ?? '')
    const doing = doings?.length === 1 ? doings[0] : doings?.shift()
    if (typeof doing === 'object') await doing.after
    perform(req, res, doing ?? vaults(path, body) ?? byContract(path, body, used, baseUrl))
  })
  baseUrl = await listen(server)
  return {
    baseUrl,
    seen,
    delivered,
    released,
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
  if (path.endsWith('/payments/challenge')) return challengeResponse(body)
  if (path.endsWith('/payments/settle')) return { status: 200, body: { txHash, settledAt: '2026-11-21T00:00:02.000Z' } }
  if (path.endsWith('/payments/redeem')) return problem(409, 'payment-not-redeemable')
  if (path.endsWith('/redeemed') || path.endsWith('/undelivered')) return { status: 200, body: {} }
  if (path.endsWith('/registry/snapshots')) return { status: 202, body: { accepted: true } }
  if (!path.endsWith('/payments/verify')) return problem(404, 'not-found', { type: `${baseUrl}/problems/not-found` })
  const credential = String(body.credential)
  if (credential === 'stub_payment_accepted')
    return { status: 200, body: verification({ settlementPending: false, payer: null }) }
  if (used.has(credential)) return problem(409, 'duplicate-payment')
  used.add(credential)
  if (body.protocol === 'mpp') return verifyMpp(credential, body)
  return { status: 200, body: verification({}) }
}

/** Of what Purser looks at, only what the tests need: that it is a credential, and of the body that came with it. */
function verifyMpp(credential: string, body: Record<string, unknown>): Doing {
  const parsed = parseMppCredential(credential)
  const refused = (reason: string) => problem(402, 'payment-verification-failed', { reason })
  if (!parsed.ok) return refused(parsed.fault.reason)
  const { challenge } = parsed.value
  if (challenge.digest !== body.digest) return refused('verification-failed')
  if (body.price !== '0') return { status: 200, body: verification({ protocol: 'mpp' }) }
  return { status: 200, body: verification({ protocol: 'mpp', amount: '0', settlementPending: false }) }
}

export function verification(changed: Record<string, unknown>): Record<string, unknown> {
  return {
    valid: true,
    paymentId: 'pay_01',
    protocol: 'x402',
    scheme: 'exact',
    method: null,
    challengeId: null,
    // Of MPP the credential says it, as long as Purser does not.
    network: changed.protocol === 'mpp' ? '' : 'eip155:84532',
    amount: '0.01',
    coin: 'USDC',
    payer,
    txHash: null,
    settledAt: null,
    redeemable: false,
    settlementPending: true,
    settlementToken: 'settlement-token-secret',
    ...changed,
  }
}

let challenges = 0

function challengeResponse(body: Record<string, unknown>): Doing {
  const mint = () => formatChallenges(mppOffers(body))
  const count = typeof body.count === 'number' ? body.count : undefined
  const shared = { ...x402Offers(body, ++challenges), expiresAt: new Date(Date.now() + 300_000).toISOString() }
  if (body.acceptMPP === false) return { status: 200, body: { ...shared, mpp: null } }
  return { status: 200, body: { ...shared, mpp: count === undefined ? mint() : Array.from({ length: count }, mint) } }
}

/** x402 cannot express a price of zero. */
function x402Offers({ acceptX402, price, resource }: Record<string, unknown>, challenge: number) {
  if (acceptX402 === false || price === '0') return { x402: null, x402V1: null }
  const extra = { challenge, name: 'USDC', version: '2' }
  const offer = { scheme: 'exact', payTo: payer, asset: token, maxTimeoutSeconds: 300, extra }
  const accepts = [{ ...offer, network: 'eip155:84532', amount: '10000' }]
  const v1 = { ...offer, network: 'base-sepolia', maxAmountRequired: '10000', resource, description: '', mimeType: '' }
  return {
    x402: encodeHeader({ x402Version: 2, error: 'Payment required', resource: { url: resource }, accepts }),
    x402V1: { x402Version: 1, error: 'Payment required', accepts: [v1] },
  }
}

/** One offer on Tempo and one on an EVM chain, each with an id of its own. */
export function mppOffers({ resource, digest, price, credentialHeader }: Record<string, unknown>): MppChallenge[] {
  const charge = { amount: price === '0' ? '0' : '10000', currency: token, recipient: payer } as const
  const offer = (method: string, request: string): MppChallenge => ({
    id: `challenge-${++challenges}`,
    realm: new URL(String(resource)).hostname,
    method,
    intent: 'charge',
    request,
    expires: new Date(Date.now() + 300_000).toISOString(),
    description: 'Goods, Payment id="none", and more',
    ...(typeof digest === 'string' && { digest }),
    ...(typeof credentialHeader === 'string' && { header: credentialHeader }),
  })
  return [
    offer('tempo', encodeMppJson(tempoChargeRequest({ ...charge, chainId: 42431 }))),
    offer('evm', encodeMppJson(evmChargeRequest({ ...charge, chainId: 84532, decimals: 6 }))),
  ]
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
  if (req.headers['content-type']?.startsWith('multipart/')) return { form: text }
  return text === '' ? {} : JSON.parse(text)
}
