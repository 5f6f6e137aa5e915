import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type DevChain, fundNative, fundToken, startChain } from '@purser/devnet'
import { networkByName } from '@purser/protocol'
import { type Dispatcher, request as send } from 'undici'
import { toHex } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { z } from 'zod'
import { type BootOptions, bootServer, type RunningServer } from '../src/boot.ts'
import type { Config } from '../src/config.ts'
import { foundOrganisation, upsertAccount } from '../src/features/organisations/index.ts'
import type { PlanName } from '../src/features/plans/index.ts'
import type { Clock } from '../src/platform/clock.ts'
import { sql } from '../src/platform/db/db.ts'
import { newId, type OrganisationId } from '../src/platform/ids.ts'
import { createLog } from '../src/platform/log.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { type WireAnswer, whyNotDeclaredAt } from './declared.ts'
import { oneNanoUsdPerGas, testConfig } from './test-config.ts'

export { oneNanoUsdPerGas } from './test-config.ts'

export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** The parsed body; an empty object when there is none. */
  readonly body: Record<string, unknown>
  readonly list: readonly Record<string, unknown>[]
}

export interface Org {
  readonly id: OrganisationId
  readonly testKey: string
  readonly liveKey: string
}

export interface World {
  readonly database: TestDatabase
  readonly server: RunningServer
  readonly base: string
  readonly config: Config
  organisation(plan?: PlanName): Promise<Org>
  call(key: string, method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** A BYO wallet of the organisation with a new address. */
  wallet(
    org: Org,
    options?: { readonly chain?: string; readonly key?: string },
  ): Promise<{ readonly id: string; readonly address: `0x${string}` }>
  /** Another process of the same deployment. */
  another(options?: Partial<Config>): Promise<{ readonly base: string; readonly server: RunningServer }>
  stop(): Promise<void>
}

/** Main networks with an unreachable node, for live wallets whose chain is not read: without a node they are refused. */
export const unreachableMain: Config['rpcUrls'] = {
  base: ['http://127.0.0.1:1'],
  ethereum: ['http://127.0.0.1:1'],
  tempo: ['http://127.0.0.1:1'],
}

/** A whole server on a new database, with the given local chains. */
export async function aWorld(
  options: {
    readonly chains?: readonly DevChain[]
    readonly rpcUrls?: Config['rpcUrls']
    readonly config?: Partial<Config>
    readonly boot?: BootOptions
    /** A database made by the test; it is dropped with the world. */
    readonly database?: TestDatabase
  } = {},
): Promise<World> {
  const database = options.database ?? (await freshDatabase({ plans: 'general' }))
  const filesDirectory = mkdtempSync(path.join(tmpdir(), 'purser-files-'))
  const config = testConfig(database.url, { ...options, filesDirectory })
  const servers: RunningServer[] = []
  const start = async (own: Config): Promise<{ base: string; server: RunningServer }> => {
    const server = await bootServer(own, {
      metricsOnMainPort: true,
      log: createLog({ level: process.env.TEST_LOG ?? 'silent' }),
      gasPrices: oneNanoUsdPerGas,
      // Local chains make blocks at once, so little is gained by waiting half a block time of the real network. A poll costs 4 ms of CPU.
      depositPollMsMax: 300,
      // What this process commits wakes its loops at once, so only work that becomes due by time begins later. A probe costs a millisecond.
      probe: { busyMs: 80, idleMs: 200 },
      ...options.boot,
    })
    servers.push(server)
    return { base: `http://127.0.0.1:${server.port}`, server }
  }
  const { base, server } = await start(config)
  if (config.role === 'api') await countDepositsAsBooked(database, config)
  for (const chain of options.chains ?? []) {
    if (networkByName(chain.network)?.nativeCoin !== null)
      await fundNative(chain, server.settlerAddress as `0x${string}`, 10n ** 20n)
  }
  const call = (key: string, method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    request(base, { key, method, path, body, headers })
  return {
    database,
    server,
    base,
    config,
    call,
    organisation: (plan = 'enterprise') => anOrganisation(server, plan),
    async wallet(org, { chain = 'base-sepolia', key = org.testKey } = {}) {
      const address = privateKeyToAccount(generatePrivateKey()).address
      const made = await call(key, 'POST', '/wallet-infra/byo-wallets', { address, chain, supportedTokens: ['USDC'] })
      if (made.status !== 201) throw new Error(`no wallet: ${JSON.stringify(made.body)}`)
      return { id: String(made.body.id), address }
    },
    another: (own = {}) => start({ ...config, ...own }),
    async stop() {
      for (const running of servers.reverse()) await running.stop()
      await database.drop()
      rmSync(filesDirectory, { recursive: true, force: true })
    },
  }
}

/**
 * Deposits are not booked where no process works: what a test mints counts at once, and what it books itself is on hold.
 */
async function countDepositsAsBooked({ db }: TestDatabase, { rpcUrls }: Config): Promise<void> {
  for (const network of Object.keys(rpcUrls))
    await db.run(
      sql`insert into deposit_cursors (network, scanned, checked, tokens) values (${network}, 1000000000, 1000000000, null)`,
    )
}

async function anOrganisation(server: RunningServer, plan: PlanName): Promise<Org> {
  const { deps } = server
  const acting = { ...deps, actor: { kind: 'operator' } as const, requestId: newId('req', deps) }
  return deps.db.tx(async (tx) => {
    const now = deps.clock.now()
    const owner = await upsertAccount(tx, {
      id: newId('acc', deps),
      email: `${randomBytes(6).toString('hex')}@example.com`,
      name: null,
      acceptedAt: now,
      createdAt: now,
    })
    const { organisation, apiKeys } = await foundOrganisation(acting, tx, {
      name: 'Acme',
      type: 'team',
      plan,
      ownerId: owner.id,
      environments: ['test', 'live'],
    })
    return { id: organisation.id, testKey: apiKeys[0]?.key ?? '', liveKey: apiKeys[1]?.key ?? '' }
  })
}

const Objects = z.array(z.record(z.string(), z.unknown()))
const AnyObject = z.record(z.string(), z.unknown())

/** Sends a request and checks the answer against `openapi.json`. `undici` takes a third of the CPU of `fetch`. */
export async function request(
  base: string,
  requested: {
    readonly key: string
    readonly method: string
    readonly path: string
    readonly body?: unknown
    readonly headers?: Record<string, string>
    /** The service is an earlier version, whose responses lack fields that were added since. */
    readonly isOlder?: boolean
  },
): Promise<Answer> {
  const sent = await send(base + requested.path, {
    method: requested.method as Dispatcher.HttpMethod,
    headers: {
      authorization: `Bearer ${requested.key}`,
      ...(requested.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...requested.headers,
    },
    ...(requested.body === undefined ? {} : { body: JSON.stringify(requested.body) }),
  })
  const [status, headers] = [sent.statusCode, headersOf(sent.headers)]
  const text = await sent.body.text()
  const undeclared = requested.isOlder ? undefined : whyNotDeclaredAt(requested, { status, headers, text })
  if (undeclared !== undefined) throw new Error(`${requested.method} ${requested.path}: ${undeclared}`)
  return answerOf({ status, headers, text })
}

function headersOf(received: Dispatcher.ResponseData['headers']): Headers {
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(received))
    for (const value of [values].flat()) headers.append(name, value)
  return headers
}

/** An answer's body as JSON. */
export async function parseAnswer(response: Response): Promise<Answer> {
  return answerOf({ status: response.status, headers: response.headers, text: await response.text() })
}

function answerOf({ status, headers, text }: WireAnswer): Answer {
  const parsed: unknown = text === '' ? {} : JSON.parse(text)
  return {
    status,
    headers,
    body: Array.isArray(parsed) ? {} : AnyObject.parse(parsed),
    list: Array.isArray(parsed) ? Objects.parse(parsed) : [],
  }
}

/** The problem code at the end of an answer's `type`. */
export function codeOf(answer: Answer): string {
  return String(answer.body.type ?? '').replace(/^.*\/problems\//, '')
}

export interface Authorization {
  readonly from: `0x${string}`
  readonly to: `0x${string}`
  readonly value: string
  readonly validAfter: string
  readonly validBefore: string
  readonly nonce: `0x${string}`
}

export interface Payer {
  readonly account: PrivateKeyAccount
  /** A v2 credential for the first offer of the challenge, changed before or after signing as requested. */
  credential(challenge: Answer, changes?: CredentialChanges): Promise<string>
}

export interface CredentialChanges {
  readonly sign?: Partial<Authorization>
  readonly after?: (payload: V2Payload) => void
}

export interface V2Payload {
  x402Version: number
  resource?: unknown
  accepted: Record<string, unknown>
  payload: { signature: string; authorization: Record<string, unknown> }
}

const Accepted = z.object({
  accepts: z.array(
    z.looseObject({
      network: z.string(),
      amount: z.string(),
      asset: z.string(),
      payTo: z.string(),
      maxTimeoutSeconds: z.number(),
      extra: z.looseObject({ name: z.string(), version: z.string() }),
    }),
  ),
})

/** A payer with a new account, funded on the chain when one is given. Its signatures expire by the clock. */
export async function aPayer(
  chain?: DevChain,
  rawUsdc = 1_000_000_000n,
  clock: Clock = { now: () => new Date() },
): Promise<Payer> {
  const account = privateKeyToAccount(generatePrivateKey())
  if (chain !== undefined) await fundToken(chain, 'USDC', account.address, rawUsdc)
  return { account, credential: (challenge, changes = {}) => signCredential(account, clock, challenge, changes) }
}

async function signCredential(
  account: PrivateKeyAccount,
  clock: Clock,
  challenge: Answer,
  changes: CredentialChanges,
): Promise<string> {
  const required: unknown = JSON.parse(Buffer.from(String(challenge.body.x402), 'base64').toString('utf8'))
  const accepted = Accepted.parse(required).accepts[0]
  if (accepted === undefined) throw new Error('the challenge has no offer')
  const now = Math.floor(clock.now().getTime() / 1000)
  const authorization: Authorization = {
    from: account.address,
    to: accepted.payTo as `0x${string}`,
    value: accepted.amount,
    validAfter: '0',
    validBefore: String(now + accepted.maxTimeoutSeconds),
    nonce: toHex(randomBytes(32)),
    ...changes.sign,
  }
  const signature = await account.signTypedData({
    domain: {
      name: accepted.extra.name,
      version: accepted.extra.version,
      chainId: Number(accepted.network.split(':')[1]),
      verifyingContract: accepted.asset as `0x${string}`,
    },
    types: {
      TransferWithAuthorization: [
        { name: 'from', type: 'address' },
        { name: 'to', type: 'address' },
        { name: 'value', type: 'uint256' },
        { name: 'validAfter', type: 'uint256' },
        { name: 'validBefore', type: 'uint256' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'TransferWithAuthorization',
    message: {
      ...authorization,
      value: BigInt(authorization.value),
      validAfter: BigInt(authorization.validAfter),
      validBefore: BigInt(authorization.validBefore),
    },
  })
  const payload: V2Payload = { x402Version: 2, accepted, payload: { signature, authorization: { ...authorization } } }
  changes.after?.(payload)
  return Buffer.from(JSON.stringify(payload)).toString('base64')
}

/** The number of answers by status. */
export function countByStatus(answers: readonly { readonly status: number }[]): Record<number, number> {
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

export { type DevChain, startChain }
