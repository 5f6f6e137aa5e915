import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fundNative, type Postgres, startPostgres } from '@purser/devnet'
import { migrate } from '@purser/server'
import { type Child, startChild } from './children.ts'
import type { Watched } from './cpu.ts'
import { type Ground, priceUsd } from './ground.ts'
import { type LoadResponse, postRequest, runLoad } from './load.ts'
import { parseObject } from './parse.ts'
import { type Bill, requirementsOf, resource, type SignedPayment } from './payments.ts'

/** One side of the comparison. */
export interface Side {
  readonly name: 'official' | 'purser'
  readonly child: Child
  readonly port: number
  readonly settler: `0x${string}`
  /** The processes whose CPU time counts, without the chain's. */
  readonly watched: readonly Watched[]
  verifyRequest(payment: SignedPayment): Buffer
  isVerified(response: LoadResponse): boolean
}

const settlerFunds = 10n ** 24n
/**
 * Receipt poll interval of the official side. viem's default for this chain is 1,000 ms; 500 ms gave it the highest
 * throughput here.
 */
const receiptPollMs = 500
const officialSettlerKey = `0x${'b7'.repeat(32)}`

/** Starts the official facilitator on a chain. `rpcUrl` leads to the same chain when it is not the chain's own. */
export async function startOfficial(ground: Ground, rpcUrl = ground.chain.rpcUrl): Promise<Side> {
  const child = await startChild('official-facilitator.ts', {
    BENCH_RPC_URL: rpcUrl,
    BENCH_SETTLER_KEY: officialSettlerKey,
    BENCH_RECEIPT_POLL_MS: String(receiptPollMs),
  })
  const settler = addressIn(child.ready('settler'))
  await fundNative(ground.chain, settler, settlerFunds)
  return {
    name: 'official',
    child,
    port: portIn(child.ready('port')),
    settler,
    watched: [{ name: 'service', pid: child.pid }],
    verifyRequest: (payment) => facilitatorRequest('/verify', ground.bill, payment),
    isVerified: ({ status, body }) => status === 200 && parseObject(body).isValid === true,
  }
}

/** The HTTP request to verify or settle a payment, as bytes. */
export function facilitatorRequest(pathname: '/verify' | '/settle', bill: Bill, { payload }: SignedPayment): Buffer {
  const body = { x402Version: 2, paymentPayload: payload, paymentRequirements: requirementsOf(bill) }
  return postRequest(pathname, JSON.stringify(body))
}

/** The database and the keys of our service, which outlive its processes. */
export interface Home {
  readonly postgres: Postgres
  readonly directory: string
  apiKey: string | undefined
  walletId: string | undefined
  stop(): Promise<void>
}

/**
 * Starts a database of its own in a directory of its own. Durability is PostgreSQL's default: a response is sent after
 * its commit is on disk.
 */
export async function startHome(settings: Readonly<Record<string, string>> = {}): Promise<Home> {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'purser-bench-'))
  const remove = () => rmSync(directory, { recursive: true, force: true, maxRetries: 3 })
  process.once('exit', remove)
  const postgres = await startPostgres({ dataDir: path.join(directory, 'postgres'), settings })
  await migrate({ url: postgres.url })
  return {
    postgres,
    directory,
    apiKey: undefined,
    walletId: undefined,
    async stop() {
      await postgres.stop()
      remove()
    },
  }
}

export interface PurserSide extends Side {
  readonly name: 'purser'
  /** The headers of every request of the benchmark's customer. */
  readonly headers: Readonly<Record<string, string>>
}

/** Starts our service in this directory; the first time with an organisation, its key and the wallet of the bill. */
export async function startPurser(ground: Ground, home: Home, rpcUrl = ground.chain.rpcUrl): Promise<PurserSide> {
  const child = await startChild('purser-service.ts', {
    BENCH_RPC_URL: rpcUrl,
    BENCH_DATABASE_URL: home.postgres.url,
    BENCH_KEY_FILE: path.join(home.directory, 'key-encryption-key'),
    BENCH_SEED: home.apiKey === undefined ? 'yes' : 'no',
  })
  home.apiKey ??= child.ready('apiKey')
  const port = portIn(child.ready('port'))
  const headers = { authorization: `Bearer ${home.apiKey}` }
  const settler = addressIn(child.ready('settler'))
  await fundNative(ground.chain, settler, settlerFunds)
  home.walletId ??= await registerWallet(port, headers, ground)
  const watched = [
    { name: 'service', pid: child.pid },
    { name: 'PostgreSQL', pid: home.postgres.pid, tree: true },
  ]
  return { name: 'purser', child, port, settler, watched, ...verifying(headers, home.walletId) }
}

/** The side with an Idempotency-Key in each request to verify, as the SDK sends one. */
export function withKeys(side: PurserSide): PurserSide {
  return {
    ...side,
    verifyRequest(payment) {
      const bytes = side.verifyRequest(payment)
      const lineEnd = bytes.indexOf('\r\n') + 2
      const field = Buffer.from(`idempotency-key: ${payment.nonce}\r\n`)
      return Buffer.concat([bytes.subarray(0, lineEnd), field, bytes.subarray(lineEnd)])
    },
  }
}

/** Another organisation at the same service, with a wallet of its own. Only the first start at a home knows its key. */
export async function otherTenant(side: PurserSide, ground: Ground): Promise<PurserSide> {
  const headers = { authorization: `Bearer ${side.child.ready('otherKey')}` }
  return { ...side, ...verifying(headers, await registerWallet(side.port, headers, ground)) }
}

function verifying(
  headers: PurserSide['headers'],
  walletId: string,
): Pick<PurserSide, 'headers' | 'verifyRequest' | 'isVerified'> {
  return {
    headers,
    verifyRequest: (payment) => postRequest('/payments/verify', verifyBody(payment, walletId), headers),
    isVerified: ({ status, body }) => status === 200 && parseObject(body).valid === true,
  }
}

function verifyBody({ credential }: SignedPayment, walletId: string): string {
  return JSON.stringify({
    protocol: 'x402',
    credential,
    price: priceUsd,
    currency: 'USD',
    walletId,
    resource,
    method: 'GET',
  })
}

/** A wallet of the same account on Tempo, which challenges can name, but which cannot be paid without a Tempo node here. */
export function registerTempoWallet({ port, headers }: PurserSide, { bill }: Ground): Promise<string> {
  return register(port, headers, { address: bill.payTo, chain: 'tempo-moderato', supportedTokens: ['pathUSD'] })
}

function registerWallet(port: number, headers: Readonly<Record<string, string>>, { bill }: Ground): Promise<string> {
  const supportedTokens = [bill.token.symbol]
  return register(port, headers, { address: bill.payTo, chain: bill.network.name, supportedTokens })
}

async function register(
  port: number,
  headers: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, unknown>>,
): Promise<string> {
  const request = postRequest('/wallet-infra/byo-wallets', JSON.stringify(wanted), headers)
  const { responses } = await runLoad({ port, connections: 1, requests: [request], msMax: 30_000 })
  const id = parseObject(responses[0]?.body ?? '').id
  if (typeof id !== 'string')
    throw new Error(`the wallet was not registered: ${responses[0]?.status} ${responses[0]?.body}`)
  return id
}

function portIn(text: string): number {
  const port = Number(text)
  if (!Number.isInteger(port) || port < 1) throw new Error(`a child serves on no port: ${text}`)
  return port
}

function addressIn(text: string): `0x${string}` {
  if (!/^0x[0-9a-fA-F]{40}$/.test(text)) throw new Error(`${text} is not an address`)
  return `0x${text.slice(2)}`
}
